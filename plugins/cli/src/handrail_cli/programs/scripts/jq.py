"""Programs of jq and yq: pure, save for what reads variables and other files."""

from __future__ import annotations

import re

from handrail_cli.programs.scripts.script_finding import READ_ONLY, UNCLEAR, ScriptFinding

# `.env` and `"env"` are keys, `{env: …}` is one, too.
OUTWARD_FUNCTION = re.compile(
    r"\$ENV|\$__prog|(?<![\w.$\"'])(?:(?:env|strenv|envsubst|load\w*|system|eval|get_search_list|modulemeta|input_filename)\b(?!\s*:)"
    r"|(?:import|include)\b)"
)


# What simple programs are made of: paths, texts, numbers, operators, and functions that only compute.
WORDS = (
    "select|map|map_values|length|keys|keys_unsorted|values|has|in|contains|inside|add|any|all|flatten|range|floor|sqrt|tostring|tonumber|type"
    "|sort|sort_by|group_by|unique|unique_by|min|max|min_by|max_by|reverse|startswith|endswith|ltrimstr|rtrimstr|split|join|ascii_downcase"
    "|ascii_upcase|test|match|capture|sub|gsub|to_entries|from_entries|with_entries|first|last|nth|limit|empty|not|and|or|if|then|elif|else|end"
    "|as|reduce|foreach|del|paths|recurse|index|indices|tojson|fromjson|todate|fromdate|now|true|false|null|objects|arrays|strings|numbers"
)
TEXT = r'"(?:[^"\\]|\\[nrt"\\/]|\\\([.][\w.]*\))*"'
# No two of these fit at the same place, so that a long program takes no longer.
SIMPLE_PROGRAM = re.compile(
    rf"(?:\s|\.[A-Za-z_]\w*\b|\.\.|\.(?![.\w])|{TEXT}|(?<![\w.$@])(?:{WORDS})\b|(?<![\w.$@])(?!(?:{WORDS})\b)[A-Za-z_]\w*(?=[ ]?[:,}}])"
    r"|\$[a-z]\w*\b|@[a-z]+\b|\.?\d|[\[\]{}()|,:;?+*/%<>=!-])*",
    re.ASCII,
)
MAX_SIMPLE = 400


def is_simple_jq(program: str) -> bool:
    """Return True for a program that computes with its input, and names no module, file or variable of the environment."""
    return (
        len(program) <= MAX_SIMPLE
        and SIMPLE_PROGRAM.fullmatch(program) is not None
        and not OUTWARD_FUNCTION.search(program)
    )


def check_jq_script(program: str) -> ScriptFinding:
    """Check that a program computes with its input only."""
    return UNCLEAR if OUTWARD_FUNCTION.search(program) else READ_ONLY
