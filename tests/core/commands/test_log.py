"""What is logged goes to stderr, and never holds up the program."""

from __future__ import annotations

import subprocess
import sys

FLOOD = """
import logging
from handrail.cli._stderr_log import configure_stderr_logging
configure_stderr_logging(debug=False)
for number in range(5_000):
    logging.warning("line %d of a flood that nobody reads, whatever it says", number)
print("done")
"""


def test_a_pipe_that_nobody_reads_does_not_stop_the_program() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FLOOD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.readline() == "done\n"
        assert program.wait(30) == 0
        told = program.stderr.read().splitlines()
    assert told[0] == "WARNING root: line 0 of a flood that nobody reads, whatever it says"
    # Lines are left out whole, never cut in the middle.
    assert all(line.endswith("whatever it says") for line in told)
