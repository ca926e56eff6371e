"""Containers, clusters, clouds and databases: what operands say beyond the options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role
from handrail_cli.programs.values import OperandRole

LOOKING_VERB = re.compile(
    r"(describe|list|get|show|ls|status|info|view|head|search|lookup|version|help|whoami|check|inspect|tail|logs?|diff|validate|lint|outputs|ps|regions|history|read|dump|snapshots|stats|find)(-[a-z0-9-]+)?"
)
CHANGING_VERB = re.compile(
    r"(delete|destroy|remove|rm|apply|create|update|put|terminate|stop|start|reboot|run|deploy|set|push|publish|sync|cp|mv|modify|attach|detach|revoke|authorize|disable|enable|reset|purge|drop|scale|restore|rollback|invoke|send|import|export|upload|exec|ssh|prune|forget|unlock|init|backup|login|logout|up|down|edit|add|resize|release|rename|promote|migrate|clone|fork|merge|close|reopen|comment|transfer|archive|lock|cancel|rerun|secret|ssm|sts|console|connect|proxy|tunnel|config)(-[a-z0-9-]+)?"
)
SECRET_NAME = re.compile(
    r"(?i).*(secret|credential|password|token|access-key|ssh-key|keypair|login-profile|session-token|decrypt|kms|parameter|env(ironment)?s?$|config:get|config$|vars?$|auth).*"
)
GH_LOOKS = re.compile(
    r"(pr|issue|run|repo|release|workflow|gist|label|project|cache|ruleset|org|codespace|ssh-key|gpg-key|variable|extension|alias|attestation|search|status|browse|completion)"
)


# Options of clouds' clients that take options or data from a file, and values that are the contents of one.
TAKES_FILE = re.compile(r"--([\w-]+-)?files?(=|$)|--cli-input-yaml\b|(.*=)?fileb?://", re.DOTALL)


def check_container_run(taking: ArgumentMatch) -> None:
    """Note the parts of this machine that a container gets; access to critical ones is dangerous."""
    for option, at, value in taking.options:
        text = value if value is not None else taking.words[at].text
        if option.name in ("-v", "--volume"):
            _note_mount(taking, at, (text or "").split(":")[0], text)
        elif option.name == "--mount":
            source = re.search(r"(?:^|,)(?:source|src)=([^,]+)", text or "")
            if text is None or (source is not None and "type=volume" not in text):
                _note_mount(taking, at, source[1] if source is not None else "", text)
        elif option.name in ("--network", "--net", "--userns") and (
            text is None or text == "host" or text.startswith("container:")
        ):
            taking.worsen("dangerous", code="privilege", why=f"{option.name} {text} joins it with this machine", at=at)
    taking.needs.add("network")


def _note_mount(taking: ArgumentMatch, at: int, source: str, text: str | None) -> None:
    if text is None:
        taking.doubt(at)
    elif re.match(r"[/.~]", source):
        # What is mounted can be read and written from inside.
        taking.name("read" if text.endswith(":ro") or "readonly" in text or ",ro" in text else "write", at, source)
        if re.fullmatch(r"/|/(etc|root|home|var|usr|boot|dev|proc|sys|run)(/.*)?|.*docker\.sock|~/?(\..*)?", source):
            taking.worsen("dangerous", code="privilege", why=f"the container gets {source!r} of this machine", at=at)


def check_container_files(taking: ArgumentMatch) -> None:
    """Check `build`, which reads its directory, and `cp`, which copies to or from this machine."""
    name = taking.path.rpartition(" ")[2]
    for number, at in enumerate(taking.operands):
        text = taking.words[at].text
        if text is None:
            taking.doubt(at)
        elif name == "build" and not re.match(r"https?:|git@|-", text):
            note_role(taking, "read", at)
        elif name == "cp" and ":" not in text and text != "-":
            note_role(taking, "dest" if number == len(taking.operands) - 1 else "read", at)


# What of a container a template shows besides its variables: whole parts hold them.
SHOWS_VARIABLES = re.compile(
    r"\bEnv|\bCreatedBy\b|Config\b(?!\.\w)|\w*Spec\b(?!\.\w)|\bTaskTemplate\b(?!\.\w)|(?<![\w)\]\"$])\.(?![A-Za-z])"
)


def check_inspection(taking: ArgumentMatch) -> None:
    """Check `inspect`: the description of a container holds its variables, unless a template selects something else."""
    template = taking.value("-f", "--format")
    if template is None or "{{" not in template or SHOWS_VARIABLES.search(template):
        taking.worsen(
            "dangerous",
            code="secret",
            why="it shows the variables of a container or image, credentials among them",
            at=0,
        )


def check_compose(taking: ArgumentMatch) -> None:
    """Mark `rm`, `push`, `publish` and `kill` of compose as dangerous, because they delete or publish.

    `down` removes only what can be recreated; options name anything else it removes.
    """
    if taking.path.endswith((" rm", " push", " publish", " kill")):
        taking.worsen("dangerous", code="destructive", why=f"{taking.path} deletes or publishes", at=0)


def check_kubectl(taking: ArgumentMatch) -> None:
    """Mark queries that show secrets of the cluster as dangerous."""
    for at in taking.operands:
        if re.search(r"(?i)(^|,|/)secrets?(\.|$|,|/)", taking.words[at].text or "secret"):
            taking.worsen("dangerous", code="secret", why="it shows secrets of the cluster", at=at)


def take_cloud(taking: ArgumentMatch, start: int) -> None:
    """Match a cloud client by its verb: querying verbs read, changing verbs are dangerous, all others are unknown."""
    words = taking.words
    texts: list[str] = []
    for at in range(start, len(words)):
        text = words[at].text
        if text is None or TAKES_FILE.match(text):
            taking.doubt(at)
        elif text.startswith("-"):
            if re.match(
                r"--(endpoint-url|profile|cli-input-json|ca-bundle|no-verify-ssl|impersonate-service-account|account|server|host|kubeconfig|config-file|vault|private-key|extra-vars|module-path|connection)\b",
                text,
            ):
                taking.doubt(at)
            elif re.search(r"(?i)with-decryption|show-secret|reveal|include-secret", text):
                taking.worsen("dangerous", code="secret", why="it shows secrets", at=at)
        else:
            texts.append(text)
    verbs = texts[:4]
    if (
        re.fullmatch(r"-v|--version|version|help|--help", words[start].text or "x" if start < len(words) else "--help")
        or "help" in texts[:3]
    ):
        _make_read_only(taking)
    elif verbs == ["sts", "get-caller-identity"]:
        _make_read_only(taking)
        taking.needs.add("network")
    elif any(CHANGING_VERB.fullmatch(verb) for verb in verbs) or any(SECRET_NAME.fullmatch(verb) for verb in verbs):
        return
    elif any(LOOKING_VERB.fullmatch(verb.rpartition(":")[2]) for verb in verbs):
        _make_read_only(taking)
        taking.needs.add("network")
        if not texts or re.match(r"(restic|borg|ansible|salt|knife|puppet)", taking.path):
            taking.doubt(start)
    else:
        taking.doubt(min(start, len(words) - 1))


def _make_read_only(taking: ArgumentMatch) -> None:
    taking.kind = "reads"
    taking.reasons.clear()


GH_LOOKING = re.compile(
    r"list|ls|view|status|diff|checks|watch|repos|issues|prs|commits|code|item-list|field-list|deploy-key|check"
)
# Options of `gh api` with which it may do more than look.
GH_SENDS = re.compile(r"-X|--method|-f|-F|--field|--raw-field|--input|-H|--header|--hostname")
# What is said where others see it and can be taken back, or fetched.
GH_ORDINARY = frozenset((
    "pr create", "issue create", "pr comment", "issue comment", "pr checkout", "repo clone", "run download", "release download",
))  # fmt: skip


# Files that these take words from, or put what they fetch into.
GH_FILES: Mapping[str, OperandRole] = {
    "-F": "read", "--body-file": "read", "--recover": "read", "-D": "dest", "--dir": "dest", "-O": "write", "--output": "write",
}  # fmt: skip


def take_gh(taking: ArgumentMatch, start: int) -> None:
    """Match `gh THING VERB`: list, view, status, diff and checks only read, and so does `gh api` with GET."""
    words = taking.words
    texts = [word.text for word in words[start:]]
    if None in texts:
        taking.doubt(start + texts.index(None))
        return
    known = [text for text in texts if text is not None]
    if not known or known[0] in ("--version", "version", "--help", "help"):
        return
    taking.needs.add("network")
    if known[0] == "status":
        return
    bare = [text for text in known if not text.startswith("-")]
    if known[:2] == ["auth", "status"] and not {"-t", "--show-token"} & set(known):
        return
    if bare[:1] == ["api"]:
        if any(GH_SENDS.match(text) for text in known) or "graphql" in bare:
            taking.worsen("dangerous", code="remote", why="it may change what is on GitHub", at=start)
        return
    if len(bare) > 1 and GH_LOOKS.fullmatch(bare[0]) and GH_LOOKING.fullmatch(bare[1]):
        if {"-w", "--web"} & set(known) or bare[1] == "deploy-key":
            taking.doubt(start)
        return
    if " ".join(bare[:2]) in GH_ORDINARY:
        taking.worsen("effect")
        _note_gh_files(taking, start)
        return
    taking.worsen("dangerous", code="remote", why="it changes what is on GitHub", at=start)


def _note_gh_files(taking: ArgumentMatch, start: int) -> None:
    """Note the files that options of `gh` name; what is behind `--` are options of git."""
    for at in range(start, len(taking.words)):
        text = taking.words[at].text or ""
        name, equals, value = text.partition("=")
        if text == "--":
            taking.doubt(at)
        elif name in GH_FILES and equals:
            note_role(taking, GH_FILES[name], at, value)
        elif text in GH_FILES and at + 1 < len(taking.words):
            note_role(taking, GH_FILES[text], at + 1)
        elif not text.startswith("--") and text[:2] in GH_FILES:
            note_role(taking, GH_FILES[text[:2]], at, text[2:])


def check_sql_client(taking: ArgumentMatch) -> None:
    """Check a database client: with only querying statements, it reads the database the user has set up."""
    if taking.fed is not None and not taking.inner:
        note_role(taking, "code/psql" if taking.path == "psql" else "code/mysql", 0, taking.fed)
    codes = [one for one in taking.inner if one.language in ("psql", "mysql")]
    if taking.given("-l", "--list") and not taking.reasons[1:] and not codes:
        _make_read_only(taking)
    elif codes and taking.unknown is None and not taking.reasons[1:] and not taking.given("-f", "--file"):
        taking.reasons.clear()
        taking.kind = "effect" if any(one.role in ("write", "append") for one in taking.named) else "reads"
    for option, at, value in taking.options:
        if option.name in ("-p", "--password") and value:
            taking.worsen("dangerous", code="secret", why="a password stands in it", at=at)
    for at in taking.operands:
        if re.search(r"://", taking.words[at].text or ""):
            taking.doubt(at)


def check_sqlite(taking: ArgumentMatch) -> None:
    """Check `sqlite3 FILE [SQL]`: with only querying statements, it reads a file of the project."""
    if not taking.operands:
        return
    note_role(taking, "read", taking.operands[0])
    for at in taking.operands[1:]:
        note_role(taking, "code/sqlite", at)
    if taking.fed is not None and len(taking.operands) == 1:
        note_role(taking, "code/sqlite", 0, taking.fed)
    if len(taking.inner) and taking.unknown is None and not taking.reasons[1:]:
        _make_read_only(taking)
    elif (
        len(taking.inner)
        and taking.unknown is None
        and all(reason.code in ("remote", "destructive") for reason in taking.reasons)
    ):
        # Changing a file of the project is like any other write.
        changes = not any(re.search(r"(?i)\b(drop|delete|truncate)\b", one.code or "") for one in taking.inner)
        if changes:
            taking.kind = "effect"
            taking.reasons.clear()
            taking.name("write", taking.operands[0])


def check_redis(taking: ArgumentMatch) -> None:
    """Check `redis-cli`: the first operand is the command."""
    if taking.operands and taking.unknown is None:
        taking.inner.clear()
        note_role(taking, "code/redis", taking.operands[0])
        if not taking.reasons[1:]:
            _make_read_only(taking)


def take_multiplexer(taking: ArgumentMatch, start: int) -> None:
    """Match a terminal multiplexer: `tmux ls` only reads; everything else runs shells."""
    texts = [word.text for word in taking.words[start:]]
    if (
        texts
        and texts[0]
        in (
            "ls",
            "list-sessions",
            "list-windows",
            "list-panes",
            "lsw",
            "lsp",
            "lsc",
            "list-clients",
            "-V",
            "-ls",
            "-list",
            "has-session",
            "has",
        )
        and all(text is not None and not re.search(r"[#;]\(?", text) for text in texts)
    ):
        _make_read_only(taking)
        taking.needs.add("inspects")
