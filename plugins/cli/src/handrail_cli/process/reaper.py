"""A small process that outlives this one by a moment: when its owner is gone without a word, it ends what the owner left running."""

from __future__ import annotations

import contextlib
import os
import subprocess

from handrail.workers.host_programs import START_FOLDER
from handrail_cli.process.process_tree import MARK_VARIABLE

# One line for each command: `+ GROUP MARK` runs in the foreground, `& GROUP MARK` has been left running, `- GROUP MARK` is over.
# Of a command in the foreground everything is ended, wherever it moved; of one left running, its group.
REAPER_SCRIPT = rf"""
trap '' HUP INT TERM QUIT
declare -A foreground left
while read -r sign group mark; do
    unset "foreground[$group]" "left[$group]"
    case $sign in
        +) foreground[$group]=$mark ;;
        '&') left[$group]=$mark ;;
    esac
done
groups=("${{!foreground[@]}}" "${{!left[@]}}")
[[ ${{#groups[@]}} == 0 ]] && exit 0
marked() {{
    local mark file
    for mark in "${{foreground[@]}}"; do
        grep -lsz "^{MARK_VARIABLE}=$mark\$" /proc/[0-9]*/environ
    done | while IFS=/ read -r _ _ file _; do echo "$file"; done
}}
for signal in TERM KILL; do
    for group in "${{groups[@]}}"; do kill -$signal -- "-$group"; done
    for process in $(marked); do kill -$signal "$process"; done
    sleep 0.3
done
"""


class ProcessReaper:
    """Process that tracks the running commands of one session.

    It ends when it is closed or when this process is gone for any reason.
    """

    def __init__(self) -> None:
        reading, self._line = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["bash", "--norc", "--noprofile", "-c", REAPER_SCRIPT],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=START_FOLDER,
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        finally:
            os.close(reading)

    def foreground(self, group: int, mark: str) -> None:
        """Report a command that is running and waited for."""
        self._say(f"+ {group} {mark}\n")

    def left(self, group: int, mark: str) -> None:
        """Report a command that was left running."""
        self._say(f"& {group} {mark}\n")

    def over(self, group: int, mark: str) -> None:
        """Report a command of which no process remains."""
        self._say(f"- {group} {mark}\n")

    def _say(self, line: str) -> None:
        # Without a warden a command still runs; it is only not ended when this process is killed.
        with contextlib.suppress(OSError):
            os.write(self._line, line.encode())

    def close(self) -> None:
        """Shut down the process; blocks for a few milliseconds, slightly longer if it has processes to end."""
        os.close(self._line)
        self._process.wait()
