"""SQL and the commands of database clients: queries look, everything else changes what others may rely on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from handrail_cli.programs.scripts.script_finding import READ_ONLY, UNCLEAR, ScriptFinding, create_dangerous_finding

STRING_OR_COMMENT = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
QUERY_STATEMENT = re.compile(r"(?is)\s*(select|show|explain|describe|desc|values|table|with)\b(.*)")
# Words that make a query do something: files, other servers, locks, functions that act.
ACTING_WORD = re.compile(
    r"(?i)\b(into|insert|update|delete|drop|alter|create|truncate|grant|revoke|copy|call|do|execute|merge|replace|attach|load_file"
    r"|load_extension|load|outfile|dumpfile|readfile|writefile|edit|fts3_tokenizer|pg_\w+|lo_\w+|dblink\w*|set_config|setval|nextval|sleep|benchmark|sys_\w+|xp_\w+"
    r"|query_to_xml|database_to_xml|analyze|for\s+update|lock|kill|shutdown)\b"
)
CHANGING_STATEMENT = re.compile(
    r"(?is)\s*(drop|delete|truncate|alter|update|insert|replace|create|grant|revoke|copy|vacuum|reindex|flush|reset|kill|load|call|do|set)\b"
)
SQLITE_QUERY = re.compile(
    r"\.(tables|schema|databases|indexes|indices|headers?|mode|width|help|show|dbinfo|fullschema|nullvalue|separator|quit|exit|timer|stats|eqp|explain|print|echo)\b[^|`]*"
)
PSQL_QUERY = re.compile(
    r"\\(d[A-Za-z+]*|l\+?|z|conninfo|timing|x|pset|a|t|H|sf\+?|sv\+?|q|\?|h|encoding)( [\w.*\"+ ]*)?\s*;?"
)
REDIS_QUERIES = frozenset((
    "get", "mget", "keys", "scan", "exists", "ttl", "pttl", "type", "strlen", "info", "ping", "dbsize", "hget", "hgetall", "hkeys", "hvals",
    "hlen", "hmget", "lrange", "llen", "lindex", "smembers", "scard", "sismember", "zrange", "zcard", "zscore", "zrangebyscore", "time",
    "lastsave", "randomkey", "object", "memory", "getrange", "bitcount", "xrange", "xlen", "xinfo", "command", "echo",
))  # fmt: skip


def check_sql_script(text: str) -> ScriptFinding:
    """Check what SQL does."""
    for statement in split_statements(text):
        if (match := QUERY_STATEMENT.fullmatch(statement)) is not None and not ACTING_WORD.search(match[2]):
            continue
        if CHANGING_STATEMENT.match(statement) or match is not None:
            return create_dangerous_finding("changes what is in a database", "destructive")
        return UNCLEAR
    return READ_ONLY


SQLITE_ACTION = re.compile(
    r"(?i)\b(load_extension|readfile|writefile|edit|fsdir|lsdir|zipfile|fts3_tokenizer|sqlar_\w+|shell\w*|csv_read)\s*\("
)


def check_sqlite_script(text: str) -> ScriptFinding:
    """Check what SQL for sqlite3 does, including commands that begin with a dot."""
    if text.lstrip().startswith("."):
        if SQLITE_QUERY.fullmatch(text.strip()):
            return READ_ONLY
        return create_dangerous_finding("uses a command of sqlite3 that may run programs or write files")
    if "\n." in text:
        return UNCLEAR
    if (does := SQLITE_ACTION.search(text)) is not None:
        return create_dangerous_finding(f"uses {does[1]}, which runs programs or works on files")
    if re.fullmatch(r"(?is)\s*pragma\s+\w+(\(\s*'?\w*'?\s*\))?\s*;?\s*", text):
        return READ_ONLY
    return check_sql_script(text)


def check_psql_script(text: str) -> ScriptFinding:
    """Check what SQL for psql does, including commands that begin with a backslash."""
    if "\\" in text:
        if PSQL_QUERY.fullmatch(text.strip()):
            return READ_ONLY
        return create_dangerous_finding("uses a command of psql that may run programs or write files")
    return check_sql_script(text)


def check_mysql_script(text: str) -> ScriptFinding:
    """Check what SQL for mysql does, some of whose commands run programs."""
    if "\\" in text or re.search(r"(?im)^\s*(system|source|tee|pager|edit|\.)\b", text):
        return create_dangerous_finding("uses a command of mysql that may run programs or write files")
    return check_sql_script(text)


def check_redis_command(text: str) -> ScriptFinding:
    """Check a command of redis, given as its first word."""
    return (
        READ_ONLY
        if text.lower() in REDIS_QUERIES
        else create_dangerous_finding("changes what is in a database", "destructive")
    )


def split_statements(text: str) -> Iterator[str]:
    """Yield the statements of a text without strings and comments.

    An unterminated string or comment stays in the statement, which is therefore not understood.
    """
    bare = STRING_OR_COMMENT.sub(" '' ", text) if "/*!" not in text else f"unknown {text}"
    for statement in bare.split(";"):
        if statement.strip():
            yield statement
