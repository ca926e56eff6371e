"""A form of Qt's widgets: python qt_form.py"""

from __future__ import annotations

import sys

from PySide6.QtCore import QDate
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDateEdit,
    QFormLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QMainWindow,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QSlider,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

ROWS = (("Apple", "1"), ("Pear", "2"), ("Plum", "3"))


def main() -> None:
    app = QApplication(sys.argv)
    window = QMainWindow()
    window.setWindowTitle("Qt form")
    menu = window.menuBar().addMenu("&File")
    menu.addAction("Open")
    menu.addAction("Save")
    form = QWidget()
    window.setCentralWidget(form)
    rows = QFormLayout(form)
    name = QLineEdit()
    name.setObjectName("name")
    rows.addRow("Name", name)
    rows.addRow("Notes", QPlainTextEdit())
    rows.addRow("", QCheckBox("Paid"))
    country = QComboBox()
    country.addItems(["France", "Spain"])
    rows.addRow("Country", country)
    count = QSpinBox()
    count.setMaximum(9_999_999)
    rows.addRow("Count", count)
    given = QLineEdit("as it is")
    given.setReadOnly(True)
    rows.addRow("Given", given)
    rows.addRow("Volume", QSlider())
    age = QLineEdit()
    age.setValidator(QIntValidator(0, 120))
    rows.addRow("Age", age)
    born = QDateEdit(QDate(2024, 1, 1))
    born.setDisplayFormat("yyyy-MM-dd")
    rows.addRow("Born", born)
    room = QComboBox()
    room.addItems([f"room {number}" for number in range(80)])
    rows.addRow("Room", room)
    words = QListWidget()
    words.addItems(["one", "two", "three"])
    rows.addRow(words)
    table = QTableWidget(len(ROWS), 2)
    table.setHorizontalHeaderLabels(["Item", "Price"])
    for at, row in enumerate(ROWS):
        for column, text in enumerate(row):
            table.setItem(at, column, QTableWidgetItem(text))
    rows.addRow(table)
    said = QLabel("nothing")
    age.textEdited.connect(lambda text: said.setText(f"heard {text}"))
    send = QPushButton("Send")
    send.clicked.connect(lambda: said.setText("done"))
    rows.addRow(send, said)
    ask = QPushButton("Ask")
    ask.clicked.connect(lambda: QMessageBox.question(window, "Sure", "Delete all of it?"))
    rows.addRow(ask)
    window.resize(600, 800)
    window.show()
    sys.exit(app.exec())


if __name__ == "__main__":
    main()
