"""Break each step of the demo in turn, so that the step itself claims all went well, and see that the checks from outside turn red.

.venv/bin/python tests/end_to_end/mutate_demo.py [STEP …]
"""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import yaml
from tests.end_to_end.demo_run import DEMO, check, fresh_folder, run_demo

TOGETHER = 3

# What each tool does instead of its job: something harmless of the same form.
INSTEAD: Mapping[str, Mapping[str, Any]] = {
    "execute_cli": {"command": "true"},
    "wait": {"seconds": 0.1, "until": {"window": "no such window"}},
    "window_focus": {"title": "no such window"},
    "observe_screen": {"image": "none"},
    "execute_accessible": {"action": "focus"},
    "read_file": {"file_path": "/etc/hostname"},
    "get_action_history": {"last_n": 1},
}
INSTEAD_OF_ACTION: Mapping[str, Mapping[str, Any]] = {
    "click": {"action": "move_mouse"},
    "type": {"text": "x"},
    "hotkey": {"key": "ctrl+shift+f9"},
    "press_key": {"key": "shift"},
}


def broken(plan: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The plan with one step that does something else and expects nothing."""
    mutant = copy.deepcopy(dict(plan))
    step = mutant["steps"][number - 1]
    step.setdefault("args", {})
    started = step["args"].get("command", "")
    for later in mutant["steps"][number:]:
        # A program that is not started is not waited for.
        if later["tool"] == "wait" and later["args"]["until"]["window"].casefold() in started:
            later["args"]["seconds"] = 0.1
    step["args"].update(INSTEAD_OF_ACTION.get(step["args"].get("action"), INSTEAD.get(step["tool"], {})))
    step["expect"] = {}
    step.pop("retry", None)
    return mutant


def survives(plan: Mapping[str, Any], number: int) -> bool:
    """Whether the checks stay green although that step was broken."""
    folder = fresh_folder()
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(broken(plan, number), allow_unicode=True), encoding="utf-8")
    try:
        check(run_demo(file, folder))
    except AssertionError:
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return True


def survivors(numbers: list[int] | None = None) -> list[str]:
    """The names of the steps that can be broken without anybody noticing."""
    plan = yaml.safe_load((DEMO / "desktop.yaml").read_text(encoding="utf-8"))
    steps = numbers or list(range(1, len(plan["steps"]) + 1))
    with ThreadPoolExecutor(TOGETHER) as pool:
        survived = list(pool.map(lambda number: survives(plan, number), steps))
    return [plan["steps"][number - 1]["name"] for number, alive in zip(steps, survived, strict=True) if alive]


if __name__ == "__main__":
    left = survivors([int(word) for word in sys.argv[1:]])
    print("\n".join(f"NOT NOTICED: {name}" for name in left) or "every broken step was noticed")
    sys.exit(1 if left else 0)
