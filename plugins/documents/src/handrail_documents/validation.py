"""What a sheet asks of the values of its cells (ECMA-376, 18.3.1.32), and which values are against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from handrail.parsing.refusing import Refused
from handrail_documents.packages import parse, parser_of
from handrail_documents.ranges import Area, area_of, cell_name

MOST_TOLD = 5
NUMBERS = {"whole": "whole numbers", "decimal": "numbers", "date": "dates, as numbers", "time": "times, as numbers"}
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
class Rule:
    """What some cells take. `strict`: a spreadsheet program would refuse other values, and not only warn."""

    areas: tuple[Area, ...]
    kind: str
    operator: str
    strict: bool
    bounds: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def takes(self) -> str | None:
        """What they take, in words; None where that is found out by other cells or a formula, and is not looked at here."""
        if self.kind == "list":
            return f"one of {', '.join(map(repr, self._items))}" if self._items else None
        if self.kind not in (*NUMBERS, "textLength") or self._limits is None or self.operator not in OPERATORS:
            return None
        length = "texts whose length is" if self.kind == "textLength" else NUMBERS[self.kind]
        return f"{length} {OPERATORS[self.operator][0].format(*(f'{limit:.15g}' for limit in self._limits))}"

    def fits(self, value: Any) -> bool:
        """Whether it takes the value, where `takes` says what it takes."""
        if self.kind == "list":
            return _shown(value).strip() in self._items
        if self.kind == "textLength":
            return self._within(len(_shown(value)))
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


def rules_of(xml: bytes) -> list[Rule]:
    """The rules of a sheet. Those that only newer programs know, in its extensions, are not among them."""
    rules: list[Rule] = []
    inside: list[str] = []
    if b"dataValidation" not in xml:
        return rules

    def start(name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        inside.append(tag)
        if tag == "dataValidation" and "sqref" in attributes:
            strict = attributes.get("showErrorMessage") in ("1", "true")
            rules.append(
                Rule(
                    tuple(_areas(attributes["sqref"])),
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

    parse(parser_of(start, end, text), xml, final=True)
    return [rule for rule in rules if rule.kind != "none"]


def _areas(named: str) -> Iterator[Area]:
    for each in named.split():
        # A reference that leads nowhere any more holds no cell to anything.
        with suppress(Refused):
            yield area_of(each)


def checked(rules: list[Rule], edits: Mapping[int, Mapping[int, Any]], sheet: str) -> Iterator[str]:
    """What has to be said of values that a sheet only warns of, or that cannot be checked. `Refused` for those that it does not take.

    Empty cells and formulas are taken by every rule, as spreadsheet programs do.
    """
    warned: list[str] = []
    unsure: list[str] = []
    around = _around(edits)
    told_of = [(rule, rule.takes) for rule in rules if any(area.meets(around) for area in rule.areas)]
    for row, values in edits.items() if told_of else ():
        for column, value in values.items():
            if value is None or isinstance(value, Mapping):
                continue
            name = cell_name(row, column)
            for rule, takes in told_of:
                if not any((row, column) in area for area in rule.areas):
                    continue
                if takes is None:
                    unsure.append(name)
                elif not rule.fits(value):
                    told = f"{name} of {sheet!r} takes {takes}, and is to hold {_shown(value)[:80]!r}"
                    if rule.strict:
                        raise Refused(
                            "arguments",
                            told,
                            hint="nothing was written; give a value that it takes, or leave the cell out",
                        )
                    warned.append(told)
    yield from _first(warned)
    if unsure:
        yield f"not checked against the validation of {sheet!r}, which other cells or a formula decide: {', '.join(_first(unsure))}"


def _around(edits: Mapping[int, Mapping[int, Any]]) -> Area:
    columns = [column for values in edits.values() for column in values]
    return Area(min(edits), max(edits), min(columns), max(columns))


def _first(told: list[str]) -> list[str]:
    return told if len(told) <= MOST_TOLD else [*told[:MOST_TOLD], f"and {len(told) - MOST_TOLD} more"]


def _shown(value: Any) -> str:
    """A value as a cell shows it."""
    if isinstance(value, bool):
        return str(value).upper()
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)
