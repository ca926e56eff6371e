"""How long programs are waited for on a busy machine."""

from __future__ import annotations

import pytest

from handrail.desktops.patience import MOST, crowding, patience, patient


@pytest.mark.parametrize(
    ("crowded", "seconds"),
    [
        pytest.param(0.0, 2.0, id="unknown"),
        pytest.param(0.5, 2.0, id="idle"),
        pytest.param(2.0, 4.0, id="twice-as-much-as-it-can"),
        pytest.param(100.0, 2.0 * MOST, id="starved"),
    ],
)
def test_programs_get_longer_where_more_runs_than_there_are_processors_for(crowded: float, seconds: float):
    assert patient(2.0, crowded) == seconds


def test_this_machine_is_asked():
    assert crowding() >= 0
    assert 2.0 <= patience(2.0) <= 2.0 * MOST
