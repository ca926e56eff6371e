"""Data validation rules of a sheet (ECMA-376, 18.3.1.32), and checks of values against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.cell_ranges import CellRange, format_cell_name, parse_cell_range
from handrail_documents.xlsx_package import create_xml_parser, feed_xml_parser

MAX_MESSAGES = 5
NUMBER_KINDS = {
    "whole": "whole numbers",
    "decimal": "numbers",
    "date": "dates, as numbers",
    "time": "times, as numbers",
}
OPERATORS: Mapping[str, tuple[str, Callable[[float, float, float], bool]]] = {
    "between": ("from {} to {}", lambda value, low, high: low <= value <= high),
    "notBetween": ("outside {} to {}", lambda value, low, high: not low <= value <= high),
    "equal": ("equal to {}", lambda value, to, _: value == to),
    "notEqual": ("other than {}", lambda value, to, _: value != to),
    "lessThan": ("below {}", lambda value, to, _: value < to),
    "lessThanOrEqual": ("up to {}", lambda value, to, _: value <= to),
    "greaterThan": ("above {}", lambda value, to, _: value > to),
    "greaterThanOrEqual": ("from {} on", lambda value, to, _: value >= to),
}


@dataclass(slots=True)
class ValidationRule:
    """Rule for the values of some cells.

    `strict` is True if a spreadsheet program would refuse other values, not merely warn.
    """

    areas: tuple[CellRange, ...]
    kind: str
    operator: str
    strict: bool
    bounds: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def takes(self) -> str | None:
        """Accepted values, in words; None if they depend on other cells or a formula, which are not evaluated here."""
        if self.kind == "list":
            return f"one of {', '.join(map(repr, self._items))}" if self._items else None
        if self.kind not in (*NUMBER_KINDS, "textLength") or self._limits is None or self.operator not in OPERATORS:
            return None
        length = "texts whose length is" if self.kind == "textLength" else NUMBER_KINDS[self.kind]
        return f"{length} {OPERATORS[self.operator][0].format(*(f'{limit:.15g}' for limit in self._limits))}"

    def fits(self, value: Any) -> bool:
        """Return True if the value is accepted. Only valid if `takes` is not None."""
        if self.kind == "list":
            return _format_value(value).strip() in self._items
        if self.kind == "textLength":
            return self._within(len(_format_value(value)))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.kind != "whole" or value == int(value)) and self._within(value)

    def _within(self, number: float) -> bool:
        assert self._limits is not None
        return OPERATORS[self.operator][1](number, self._limits[0], self._limits[-1])

    @property
    def _items(self) -> list[str]:
        first = self.bounds.get("formula1", "").strip()
        named = len(first) > 1 and first[0] == first[-1] == '"'
        return [item.strip() for item in first[1:-1].replace('""', '"').split(",")] if named else []

    @property
    def _limits(self) -> list[float] | None:
        wanted = ("formula1", "formula2") if self.operator in ("between", "notBetween") else ("formula1",)
        try:
            return [float(self.bounds[name]) for name in wanted]
        except (KeyError, ValueError):
            return None


def parse_validation_rules(xml: bytes) -> list[ValidationRule]:
    """Return the rules of a sheet, without those in its extensions, which only newer programs know."""
    rules: list[ValidationRule] = []
    inside: list[str] = []
    if b"dataValidation" not in xml:
        return rules

    def start(name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        inside.append(tag)
        if tag == "dataValidation" and "sqref" in attributes:
            strict = attributes.get("showErrorMessage") in ("1", "true")
            rules.append(
                ValidationRule(
                    tuple(_parse_ranges(attributes["sqref"])),
                    attributes.get("type", "none"),
                    attributes.get("operator", "between"),
                    strict and attributes.get("errorStyle", "stop") == "stop",
                )
            )

    def end(_name: str) -> None:
        inside.pop()

    def text(data: str) -> None:
        if inside[-2:-1] == ["dataValidation"] and inside[-1] in ("formula1", "formula2"):
            bounds = rules[-1].bounds
            bounds[inside[-1]] = bounds.get(inside[-1], "") + data

    feed_xml_parser(create_xml_parser(start, end, text), xml, final=True)
    return [rule for rule in rules if rule.kind != "none"]


def _parse_ranges(named: str) -> Iterator[CellRange]:
    for each in named.split():
        # A reference that leads nowhere any more holds no cell to anything.
        with suppress(ParseRefused):
            yield parse_cell_range(each)


def check_values(rules: list[ValidationRule], edits: Mapping[int, Mapping[int, Any]], sheet: str) -> Iterator[str]:
    """Yield notes about values that a sheet merely warns about, or that cannot be checked.

    Raises `ParseRefused` for values that it does not accept. Empty cells and formulas are accepted by every rule, as in
    spreadsheet programs.
    """
    warned: list[str] = []
    unsure: list[str] = []
    around = _bounding_range(edits)
    told_of = [(rule, rule.takes) for rule in rules if any(area.meets(around) for area in rule.areas)]
    for row, values in edits.items() if told_of else ():
        for column, value in values.items():
            if value is None or isinstance(value, Mapping):
                continue
            name = format_cell_name(row, column)
            for rule, takes in told_of:
                if not any((row, column) in area for area in rule.areas):
                    continue
                if takes is None:
                    unsure.append(name)
                elif not rule.fits(value):
                    told = f"{name} of {sheet!r} takes {takes}, and is to hold {_format_value(value)[:80]!r}"
                    if rule.strict:
                        raise ParseRefused(
                            "arguments",
                            told,
                            hint="nothing was written; give a value that it takes, or leave the cell out",
                        )
                    warned.append(told)
    yield from _limit_messages(warned)
    if unsure:
        yield f"not checked against the validation of {sheet!r}, which other cells or a formula decide: {', '.join(_limit_messages(unsure))}"


def _bounding_range(edits: Mapping[int, Mapping[int, Any]]) -> CellRange:
    columns = [column for values in edits.values() for column in values]
    return CellRange(min(edits), max(edits), min(columns), max(columns))


def _limit_messages(told: list[str]) -> list[str]:
    return told if len(told) <= MAX_MESSAGES else [*told[:MAX_MESSAGES], f"and {len(told) - MAX_MESSAGES} more"]


def _format_value(value: Any) -> str:
    """Format a value as a cell shows it."""
    if isinstance(value, bool):
        return str(value).upper()
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)
