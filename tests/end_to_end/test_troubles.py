"""What a new user may run into is told in one line with its cure, and docs/troubleshooting.md shows it as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.end_to_end.troubles.page import HEAD, PAGE, Trouble, troubles
from tests.end_to_end.troubles.place import Place

TROUBLES = list(troubles())
# A rule to paste, which has a line for each key.
PASTED = re.compile(r"\[\[policy\.rules\]\]$|\w+ = ")


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_a_trouble_is_told_in_one_line_with_its_cure(trouble: Trouble, tmp_path: Path) -> None:
    met = trouble.meet(Place(tmp_path))
    kinds = [line.split(" ")[0] for line in met.lines if PASTED.match(line) is None]
    assert kinds in (["Error:"], ["Error:", "Hint:"], ["Note:"], ["WARNING"]), met.said
    assert met.code in ((1, 2) if kinds[0] == "Error:" else (0,))
    assert met.cure, met.said
    assert trouble.section(met) in PAGE.read_text(encoding="utf-8"), "If this fails, run `make docs`."


def test_the_page_shows_these_troubles_and_no_others() -> None:
    titles = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]
    assert titles == [trouble.title for trouble in TROUBLES]
    assert PAGE.read_text(encoding="utf-8").startswith(HEAD)
