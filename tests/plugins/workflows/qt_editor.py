"""A small editor with Qt's own dialogs. Its argument, such as `de`, is the language that Qt speaks in them.

With a second argument `late` it thinks for three seconds before it asks about unsaved changes, with `forgetful` it writes nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QTimer, QTranslator
from PySide6.QtGui import QAction, QCloseEvent, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QGroupBox,
    QLineEdit,
    QMainWindow,
    QMessageBox,
    QPlainTextEdit,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

OWN = QFileDialog.Option.DontUseNativeDialog
Button = QMessageBox.StandardButton
LATE = "late" in sys.argv
FORGETFUL = "forgetful" in sys.argv


class Editor(QMainWindow):
    def __init__(self) -> None:
        super().__init__()
        self.path: Path | None = None
        self.late = LATE
        self.text = QPlainTextEdit()
        self.setCentralWidget(self.text)
        menu = self.menuBar().addMenu("&File")
        self._item(menu, "&Open…", self.open_file, "Ctrl+O")
        self._item(menu, "&Save", self.save, "Ctrl+S")
        self._item(menu, "Save &As…", self.save_as, "Ctrl+Shift+S")
        self._item(menu, "&Form", self.show_form, "")
        self._item(menu.addMenu("&Export"), "As &HTML", self.export, "")
        self.text.document().modificationChanged.connect(self.setWindowModified)
        self.entitle()

    def _item(self, menu, name: str, run, key: str) -> None:
        action = QAction(name, self)
        action.setShortcut(QKeySequence(key))
        action.triggered.connect(lambda: run())
        menu.addAction(action)

    def entitle(self) -> None:
        self.setWindowTitle(f"{self.path.name if self.path else 'Untitled'}[*] - Qt Editor")

    def export(self) -> None:
        self.text.setPlainText("<p>exported</p>")

    def show_form(self) -> None:
        page = QWidget()
        form, column = QFormLayout(), QVBoxLayout(page)
        waits = QLineEdit()
        waits.setEnabled(False)
        for label, widget in (
            ("Name", QLineEdit()),
            ("Country", QComboBox()),
            ("", QCheckBox("Subscribe")),
            ("Waits", waits),
        ):
            form.addRow(label, widget)
            if isinstance(widget, QComboBox):
                widget.addItems(["Austria", "Germany", "Turkey"])
        column.addLayout(form)
        for kind in ("Billing", "Shipping"):
            group = QGroupBox(kind)
            QFormLayout(group).addRow("City", QLineEdit())
            column.addWidget(group)
        for choice in ("By post", "By mail"):
            column.addWidget(QRadioButton(choice))
        self.setCentralWidget(page)

    def open_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, options=OWN)
        if name:
            self.path = Path(name)
            self.text.setPlainText(self.path.read_text(encoding="utf-8"))
            self.entitle()

    def save(self) -> bool:
        return self.save_as() if self.path is None else self.write(self.path)

    def save_as(self) -> bool:
        name, _ = QFileDialog.getSaveFileName(self, options=OWN)
        return bool(name) and self.write(Path(name))

    def write(self, path: Path) -> bool:
        if not FORGETFUL:
            path.write_text(self.text.toPlainText(), encoding="utf-8")
        self.path = path
        self.text.document().setModified(False)
        self.entitle()
        return True

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 # Qt's name
        if not self.text.document().isModified():
            return
        if self.late:
            self.late = False
            event.ignore()
            QTimer.singleShot(3000, self.close)
        else:
            self.late = LATE
            choices = Button.Save | Button.Discard | Button.Cancel
            said = QMessageBox.warning(self, "Editor", "The document has been modified.", choices)
            event.setAccepted(self.save() if said == Button.Save else said == Button.Discard)


app = QApplication(sys.argv)
translator = QTranslator(app)
if translator.load(f"qtbase_{sys.argv[1]}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
    app.installTranslator(translator)
editor = Editor()
editor.resize(600, 400)
editor.show()
sys.exit(app.exec())
