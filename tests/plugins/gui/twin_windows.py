"""Two windows of one program that are called the same, one below and to the right of the other: python twin_windows.py"""

from __future__ import annotations

import sys

from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QVBoxLayout, QWidget


def twin(number: int) -> QWidget:
    """A window with a button that counts in its field how often it was pressed."""
    window = QWidget()
    window.setWindowTitle("twins")
    field = QLineEdit("0")
    field.setAccessibleName("count")
    button = QPushButton(f"press {number}")
    button.clicked.connect(lambda: field.setText(str(int(field.text()) + 1)))
    rows = QVBoxLayout(window)
    rows.addWidget(field)
    rows.addWidget(button)
    window.setGeometry(100 + 30 * number, 100 + 30 * number, 400, 300)
    window.show()
    return window


def main() -> None:
    program = QApplication(sys.argv)
    kept = [twin(1), twin(2)]
    program.exec()
    del kept


if __name__ == "__main__":
    main()
