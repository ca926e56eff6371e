"""What the tests of bash commands share: circumstances on a Linux machine."""

from __future__ import annotations

from pathlib import Path

from handrail import EvaluationContext

HOME = Path("/home/user")
WORK = HOME / "project"
# Without a sandbox.
BARE = EvaluationContext(
    cwd=WORK,
    home=HOME,
    user="user",
    environment={"PATH": "/usr/bin:/bin", "HOME": str(HOME)},
    workspace=(WORK,),
    platform="linux",
)
