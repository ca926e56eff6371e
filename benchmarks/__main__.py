"""`python -m benchmarks [ROW…] [--quick] [--json] [--corpus FILE]`: the table of all rows, or of those named.

Without names, and for the name `verdicts`, it also prints how labelled commands are judged (see `benchmarks/verdicts.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import traceback
from collections.abc import Mapping

from benchmarks import (
    applications,
    artifacts,
    browsers,
    declarations,
    dispatch,
    documents,
    files,
    screen,
    seeing,
    servers,
    serving,
    shell,
    start,
    undo,
    verdicts,
    vision,
)
from benchmarks.measure import Absent, Effort
from benchmarks.report import Measurement, Row, markdown

ROWS: Mapping[str, Measurement] = {
    name: row
    for group in (
        dispatch,
        shell,
        files,
        undo,
        documents,
        artifacts,
        screen,
        applications,
        vision,
        seeing,
        start,
        serving,
        servers,
        browsers,
        declarations,
    )
    for name, row in group.ROWS.items()
}

VERDICTS = "verdicts"


def main() -> int:
    """Measure and print the rows; return 1 if a row failed. A missed goal is reported, but is not a failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of: {', '.join(ROWS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    parser.add_argument(
        "--corpus", metavar="FILE", help=f"labelled commands (default: ${verdicts.CORPUS}, or a small set)"
    )
    given = parser.parse_args()
    if unknown := [name for name in given.rows if name not in (*ROWS, VERDICTS)]:
        parser.error(f"there is no row {', '.join(unknown)}; there are {', '.join((*ROWS, VERDICTS))}")
    done = [_measure(name, Effort(given.quick)) for name in given.rows or ROWS if name != VERDICTS]
    rows = [row for row, _ in done]
    if given.json:
        print(json.dumps([row.wire() for row in rows], indent=2, ensure_ascii=False))
    elif rows:
        print(markdown(rows))
    if not given.json and (not given.rows or VERDICTS in given.rows):
        print(f"\n{verdicts.table(verdicts.corpus(given.corpus))}")
    return int(not all(whole for _, whole in done))


def _measure(name: str, effort: Effort) -> tuple[Row, bool]:
    """Measure one row; return it with True if nothing failed unexpectedly. A failure does not affect the other rows."""
    print(f"{name} …", file=sys.stderr, flush=True)
    try:
        return asyncio.run(ROWS[name](effort)), True
    except Absent as exc:
        return Row(name, note=str(exc)), True
    # Whatever a row or a peer of it raises is shown, and the other rows are measured all the same.
    except Exception as exc:  # noqa: BLE001
        traceback.print_exc()
        return Row(name, note=f"failed: {type(exc).__name__}: {exc}"), False


if __name__ == "__main__":
    sys.exit(main())
