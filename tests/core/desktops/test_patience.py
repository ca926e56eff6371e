"""How long programs are waited for on a busy machine."""

from __future__ import annotations

import pytest

from handrail.desktop.load_timeouts import MAX_SCALE, read_load_per_cpu, scale_by_load, scale_timeout


@pytest.mark.parametrize(
    ("crowded", "seconds"),
    [
        pytest.param(0.0, 2.0, id="unknown"),
        pytest.param(0.5, 2.0, id="idle"),
        pytest.param(2.0, 4.0, id="twice-as-much-as-it-can"),
        pytest.param(100.0, 2.0 * MAX_SCALE, id="starved"),
    ],
)
def test_programs_get_longer_where_more_runs_than_there_are_processors_for(crowded: float, seconds: float):
    assert scale_by_load(2.0, crowded) == seconds


def test_this_machine_is_asked():
    assert read_load_per_cpu() >= 0
    assert 2.0 <= scale_timeout(2.0) <= 2.0 * MAX_SCALE
