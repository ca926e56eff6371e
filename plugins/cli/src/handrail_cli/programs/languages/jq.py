"""Programs of jq and yq: pure, save for what reads variables and other files."""

from __future__ import annotations

import re

from handrail_cli.programs.languages.finding import READS, UNCLEAR, Finding

# `.env` and `"env"` are keys, `{env: …}` is one, too.
OUTWARD = re.compile(
    r"\$ENV|\$__prog|(?<![\w.$\"'])(?:(?:env|strenv|envsubst|load\w*|system|eval|get_search_list|modulemeta|input_filename)\b(?!\s*:)"
    r"|(?:import|include)\b)"
)


def look(program: str) -> Finding:
    """Whether a program computes with its input only."""
    return UNCLEAR if OUTWARD.search(program) else READS
