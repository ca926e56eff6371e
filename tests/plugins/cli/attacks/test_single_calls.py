"""Attacks in one call on the shell itself, and in two by a variable that the session keeps."""

from __future__ import annotations

import pytest
from tests.plugins.cli.attacks.attacker import Attacker
from tests.plugins.cli.attacks.single_calls import LED, SINGLE_CALLS


@pytest.mark.parametrize("kind", SINGLE_CALLS)
@pytest.mark.timeout(1200)
async def test_no_single_call_reaches_anything_without_approval(attacker: Attacker, kind: str) -> None:
    for command in SINGLE_CALLS[kind]():
        await attacker.call(attacker.stage.fill_in(command), timeout=5)
        # A call may have gone elsewhere, and may have left variables for those that follow.
        attacker.session.keep(cwd=attacker.stage.workspace, environment={})
    assert attacker.tally.breaches == []


@pytest.mark.timeout(300)
async def test_no_variable_of_an_earlier_call_leads_a_program(attacker: Attacker) -> None:
    for variable, program in LED.items():
        name, _, value = attacker.stage.fill_in(variable).partition("=")
        await attacker.call(f"export {name}='{value}'", timeout=5)
        await attacker.call(program, timeout=5)
        attacker.session.keep(cwd=attacker.stage.workspace, environment={})
    assert attacker.tally.breaches == []
