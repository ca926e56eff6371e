"""Checks and grammars of single programs: processes, addresses, transfers, packages."""

from __future__ import annotations

import re

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role
from handrail_cli.programs.grammars.common_checks import FOREIGN_ADDRESS, SECRET_SETTING, check_foreign_address
from handrail_cli.programs.grammars.interpreters import take_python_module
from handrail_cli.programs.values import InnerRun, UseNeed

DATA_OPTIONS = (
    "-d",
    "--data",
    "--data-ascii",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
    "--url-query",
)
PS_WORD = re.compile(
    r"-[AaNdeflFjlyLTwHMcmux]+|[auxwfjlmTrsvh]+|[\d,]+|-[pCGgstUu][\w,.-]+|--(pid|ppid|user|sort|cols|columns|width)=[\w,%+-]+"
    r"|--(no-headers|headers|forest)"
)
PS_COLUMN = (
    r"(pid|ppid|pgid|sid|tgid|tid|lwp|nlwp|thcount|uid|user|ruser|euser|gid|group|comm|args|cmd|command|ucmd|fname|%cpu|pcpu|%mem|pmem|rss|rsz|vsz|vsize"
    r"|sz|size|stat|state|s|time|cputime|times|etime|etimes|start|start_time|lstart|stime|tty|tt|tname|ni|nice|pri|psr|wchan|cls|rtprio|unit|label)"
)
PS_COLUMNS = re.compile(rf"{PS_COLUMN}(:\d+)?=?(,{PS_COLUMN}(:\d+)?=?)*")

# Options that say what is shown of a service.
PROPERTY_OPTIONS = frozenset(("-p", "-P", "--property"))


def check_curl(taking: ArgumentMatch) -> None:
    """Check the data sent by `curl`: literal text is an effect, a file is named as sent.

    Addresses of local files are read.
    """
    for option, at, value in taking.options:
        text = value if value is not None else taking.words[at].text
        if option.name in DATA_OPTIONS:
            if text is None:
                taking.doubt(at)
            elif (
                re.match(r"@", text)
                or (option.name in ("-F", "--form") and re.search(r"=[@<]", text))
                or (option.name in ("--data-urlencode", "--url-query") and "@" in text.partition("=")[0])
            ):
                note_role(taking, "send", at, re.split("[@<]", text, maxsplit=1)[1].partition(";")[0])
        elif option.name in (
            "-H",
            "--header",
            "-b",
            "--cookie",
            "-w",
            "--write-out",
            "-A",
            "--user-agent",
            "-e",
            "--referer",
        ):
            if text is None:
                taking.doubt(at)
            elif text.startswith("@"):
                note_role(taking, "send", at, text[1:])
            elif option.name in ("-b", "--cookie") and "=" not in text:
                note_role(taking, "send", at, text)
            elif option.name in ("-w", "--write-out") and "%output{" in text:
                taking.doubt(at)
        elif option.name in ("-O", "--remote-name", "--remote-name-all", "-J"):
            taking.name("dest", 0, ".")
        elif option.name in ("-X", "--request") and (text or "DELETE").upper() in ("DELETE", "PUT", "PATCH"):
            taking.worsen("dangerous", code="remote", why=f"it changes what is there ({text})", at=at)
    _check_addresses(taking)


def check_wget(taking: ArgumentMatch) -> None:
    """Check `wget`, which writes into the working directory unless told otherwise."""
    if not taking.given("-O", "--output-document", "-P", "--directory-prefix", "--spider"):
        taking.name("dest", 0, ".")
    for option, at, value in taking.options:
        if option.name == "--method" and (value or taking.words[at].text or "DELETE").upper() in (
            "DELETE",
            "PUT",
            "PATCH",
        ):
            taking.worsen("dangerous", code="remote", why="it changes what is there", at=at)
    _check_addresses(taking)


def _check_addresses(taking: ArgumentMatch) -> None:
    taking.named = [
        named
        for named in taking.named
        # A dash stands for the standard output.
        if named.role != "write" or (named.value or taking.words[named.word_index].text) != "-"
    ]
    for at in taking.operands:
        text = taking.words[at].text
        if text is None:
            taking.doubt(at)
        elif text.lower().startswith("file:"):
            note_role(taking, "read", at, re.sub(r"(?i)^file:(//(localhost)?)?", "", text))
        elif re.match(r"(?i)(dict|gopher|ldap|smb|scp|sftp|telnet|tftp|smtp|imap|pop3)s?:", text):
            taking.worsen("dangerous", code="remote", why=f"{text!r} is no address of the web", at=at)


def check_httpie(taking: ArgumentMatch) -> None:
    """Check `http POST url field=value field@file`."""
    for at in taking.operands:
        text = taking.words[at].text
        if text is None:
            taking.doubt(at)
        elif re.fullmatch(r"[\w-]+(:?=@|@).+", text):
            note_role(taking, "send", at, text.partition("@")[2])
        elif text in ("DELETE", "PUT", "PATCH"):
            taking.worsen("dangerous", code="remote", why=f"it changes what is there ({text})", at=at)


def check_name_lookup(taking: ArgumentMatch) -> None:
    """Check a name lookup: a name built from data read on this machine would leak that data."""
    for at in taking.operands:
        if taking.words[at].text is None:
            taking.worsen("dangerous", code="sends_data", why="the name that it asks for may carry data away", at=at)
            taking.doubt(at)


def check_rsync(taking: ArgumentMatch) -> None:
    """Check `rsync`: `host:path` is another machine; copying from it is a download, copying to it sends data."""
    remote = [
        one
        for one in taking.named
        if one.role in ("read", "dest") and _is_remote(taking.words[one.word_index].text, one.value)
    ]
    if not remote:
        return
    taking.needs.add("network")
    for one in remote:
        taking.named.remove(one)
        taking.name("host", one.word_index)
        if one.role == "dest":
            taking.worsen("dangerous", code="sends_data", why="it sends files to another machine", at=one.word_index)


def _is_remote(text: str | None, value: str | None) -> bool:
    return value is None and (text is None or re.match(r"[^/]*:|rsync://", text) is not None)


def check_packages(taking: ArgumentMatch) -> None:
    """Check packages: one given by its address is from an unknown source; `./x` is the project's."""
    for at in taking.operands:
        text = taking.words[at].text
        if text is None:
            taking.doubt(at)
        elif FOREIGN_ADDRESS.fullmatch(text):
            taking.worsen("dangerous", code="foreign_source", why=f"it installs what it finds at {text!r}", at=at)
        elif re.match(r"/|~|(\./)*\.\.(/|$)", text):
            # What installs a folder runs code of it.
            note_role(taking, "execute", at)
        elif text == "global":
            taking.worsen("dangerous", code="installs", why="it installs for the whole account", at=at)


def check_dpkg(taking: ArgumentMatch) -> None:
    """Check `dpkg`, whose queries are options."""
    if taking.given("-I", "-c", "--info", "--contents"):
        _make_read_only(taking)
        for at in taking.operands[:1]:
            note_role(taking, "read", at)
    elif taking.given(*DPKG_QUERY_OPTIONS):
        _make_read_only(taking, "inspects")


def check_local_packages(taking: ArgumentMatch) -> None:
    """Check packages: `./NAME.deb` is a file, any other name is from the package lists."""
    for at in taking.operands:
        text = taking.words[at].text or "/"
        if text.startswith((".", "/", "~")) or text.endswith((".deb", ".dsc", ".changes")):
            note_role(taking, "read", at)


DPKG_QUERY_OPTIONS = (
    "-l", "-L", "-s", "-S", "-p", "-C", "-V", "--list", "--listfiles", "--status", "--search", "--print-avail",
    "--get-selections", "--print-architecture", "--print-foreign-architectures", "--audit", "--verify", "--compare-versions",
)  # fmt: skip


def check_pacman(taking: ArgumentMatch) -> None:
    """Check `pacman`: `-Q` and `-F` query, and so does `-S` with a query option."""
    asks = taking.given("-Q", "-F", "-T", "--query", "--files", "--deptest")
    searches = taking.given("-S") and taking.given("-s", "-i", "-l", "--search", "--info")
    if (asks or searches) and not taking.given("-y", "-u"):
        _make_read_only(taking, "network" if searches and taking.path != "pacman" else "inspects")
        if taking.given("-p"):
            _note_read_operands(taking)


def check_rpm(taking: ArgumentMatch) -> None:
    """Check `rpm`: `-q` and `-V` query."""
    if taking.given("-q", "--query", "-V", "--verify", "-K", "--checksig", "--showrc"):
        _make_read_only(taking, "inspects")
        if taking.given("-p", "--package", "-K", "--checksig"):
            _note_read_operands(taking)


def _note_read_operands(taking: ArgumentMatch) -> None:
    for at in taking.operands:
        note_role(taking, "read", at)


def _make_read_only(taking: ArgumentMatch, *needs: UseNeed) -> None:
    taking.kind = "reads"
    taking.reasons = [reason for reason in taking.reasons if reason.code == "runs_program"]
    taking.named.clear()
    taking.needs = set(needs)
    if taking.reasons:
        taking.kind = "dangerous"


def take_uv_run(taking: ArgumentMatch, start: int) -> None:
    """Match `uv run [OPTIONS] COMMAND…`."""
    words = taking.words
    at = start
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        if text == "--":
            at += 1
            break
        if re.fullmatch(
            r"-p|--(with|with-requirements|with-editable|extra|group|only-group|package|python|project|directory|env-file|refresh-package)",
            text,
        ):
            at += 1
        elif text in ("-m", "--module"):
            take_python_module(taking, at + 1)
            return
        elif not re.fullmatch(
            r"-[qvn]+|--(no-sync|frozen|locked|isolated|active|offline|no-project|all-extras|no-dev|all-groups|quiet|verbose|no-cache|exact|dev|all-packages|no-env-file|refresh)|--[a-z-]+=.*",
            text,
        ):
            taking.doubt(at)
            return
        at += 1
    if at < len(words):
        taking.inner.append(InnerRun(at, len(words)))
        check_foreign_address(taking, at)


def take_ps(taking: ArgumentMatch, start: int) -> None:
    """Plain listings; `e` and some columns show variables of other programs."""
    words = taking.words
    at = start
    while at < len(words):
        text = words[at].text or "?"
        if re.fullmatch(r"-[AaNdeflFjlyLTwHMcm]*[oO]|[auxwfjlmTrsvh]*o|--format", text):
            at += 1
            known = at < len(words) and PS_COLUMNS.fullmatch(words[at].text or "?")
        elif re.fullmatch(r"-[pCGgstUu]|--(pid|ppid|user|sort)", text):
            at += 1
            known = at < len(words) and words[at].text is not None
        elif text in ("--help", "--version", "-V"):
            known = True
        else:
            known = PS_WORD.fullmatch(text) or (
                text.startswith(("-o", "--format="))
                and PS_COLUMNS.fullmatch(re.sub(r"-o|--format=", "", text, count=1))
            )
        if not known:
            taking.doubt(min(at, len(words) - 1))
        at += 1


def take_kill(taking: ArgumentMatch, start: int) -> None:
    """Match `kill`; `kill -l` lists signals.

    Signals that cannot be handled, process groups and all processes at once require the user's approval.
    """
    words = taking.words
    texts = [word.text or "?" for word in words[start:]]
    if texts and re.fullmatch(r"-[lL]|--list|--table|-l\d*", texts[0]):
        taking.kind = "reads"
        return
    strong = any(re.fullmatch(r"(-s|--signal=?)?-?(9|KILL|SIGKILL|STOP|SIGSTOP|19)", text) for text in texts[:2])
    many = [text for text in texts[1:] if re.fullmatch(r"-\d+", text)] or not all(
        re.fullmatch(r"-?[\w-]+|%\d+|--.*", text) for text in texts
    )
    if strong or many or not all(word.text is not None for word in words[start:]):
        taking.worsen("dangerous", code="processes", why="it ends processes that cannot object, or many", at=0)


def check_no_operands(taking: ArgumentMatch) -> None:
    """Mark a command with operands as dangerous: it mounts or changes something."""
    if taking.operands:
        taking.worsen("dangerous", code="system_change", why=f"{taking.path} changes the system", at=taking.operands[0])


def check_iptables(taking: ArgumentMatch) -> None:
    """Check `iptables`: `-L` and `-S` list."""
    if taking.given("-L", "-S", "--list", "--list-rules"):
        _make_read_only(taking, "inspects")


def check_setting(taking: ArgumentMatch) -> None:
    """Mark a setting whose name suggests a credential as dangerous."""
    for at in taking.operands:
        if SECRET_SETTING.search(taking.words[at].text or "token") and taking.words[at].text != "registry":
            taking.worsen("dangerous", code="secret", why=f"{taking.words[at].guess!r} may be a credential", at=at)


def check_service(taking: ArgumentMatch) -> None:
    """Check `service NAME status` and `service --status-all`."""
    texts = [taking.words[at].text for at in taking.operands]
    named = len(texts) == 2 and texts[1] == "status" and re.fullmatch(r"[\w@:][\w@:.-]*", texts[0] or "/") is not None
    if named or (not texts and taking.given("--status-all")):
        _make_read_only(taking, "inspects")


def check_unit_properties(taking: ArgumentMatch) -> None:
    """Check `systemctl show`: it also shows the variables of services, unless asked for other properties."""
    asked = [value or taking.words[at].text for option, at, value in taking.options if option.name in PROPERTY_OPTIONS]
    if not asked or any(names is None or "environment" in names.lower() for names in asked):
        taking.worsen("dangerous", code="secret", why="it shows variables that may be credentials")


def take_crontab(taking: ArgumentMatch, start: int) -> None:
    """Match `crontab -l`, which lists."""
    texts = [word.text for word in taking.words[start:]]
    if texts == ["-l"]:
        _make_read_only(taking, "inspects")


def take_ssh(taking: ArgumentMatch, start: int) -> None:
    """Match `ssh` and note the command that runs on the other machine."""
    words = taking.words
    at = start
    if [word.text for word in words[start:]] in (["-V"], ["-Q", "cipher"]):
        _make_read_only(taking)
        return
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        at += 2 if re.fullmatch(r"-[46AaCfGgKkMNnqsTtVvXxYy]*[BbcDEeFIiJLlmOopQRSWw]", text) else 1
    if at < len(words):
        taking.name("host", at)
    texts = [word.text for word in words[at + 1 :]]
    if texts and None not in texts:
        taking.inner.append(
            InnerRun(at + 1, len(words), " ".join(text for text in texts if text is not None), "bash", "remote")
        )


def check_scp(taking: ArgumentMatch) -> None:
    """Between two places here, scp copies; else it talks to another machine."""
    named = [taking.words[at].text for at in taking.operands]
    if len(named) > 1 and all(text is not None and not re.match(r"[^/]*:", text) for text in named):
        taking.kind = (
            "effect" if not [reason for reason in taking.reasons if reason.code == "runs_program"] else "dangerous"
        )
        taking.reasons = [reason for reason in taking.reasons if reason.code == "runs_program"]
        for at in taking.operands[:-1]:
            taking.name("read", at)
        taking.name("dest", taking.operands[-1])


def take_text_browser(taking: ArgumentMatch, start: int) -> None:
    """Match `lynx -dump URL`."""
    for at in range(start, len(taking.words)):
        text = taking.words[at].text
        if text is None or (
            text.startswith("-") and text not in ("-dump", "-source", "-listonly", "-nolist", "-width", "-T")
        ):
            taking.doubt(at)
        elif re.match(r"(?i)https?://", text):
            taking.name("url", at)


def take_gpg(taking: ArgumentMatch, start: int) -> None:
    """Match `gpg`: listing public keys and checking signatures only read."""
    texts = [word.text or "?" for word in taking.words[start:]]
    if texts and re.fullmatch(
        r"-k|--list-(public-)?keys|--verify|--fingerprint|--list-sigs|--version|--help|--list-packets|--list-config",
        texts[0],
    ):
        # Its keys are kept where the sandbox shows nothing.
        _make_read_only(taking, *(() if texts[0] in ("--version", "--help") else ("network",)))
        for at in range(start + 1, len(taking.words)):
            if texts[0] in ("--verify", "--list-packets"):
                note_role(taking, "read", at)
            elif texts[at - start].startswith("-"):
                taking.doubt(at)


def take_ssh_keygen(taking: ArgumentMatch, start: int) -> None:
    """Match `ssh-keygen`: `-l` shows a fingerprint; otherwise keys are created or changed."""
    texts = [word.text or "?" for word in taking.words[start:]]
    if texts and re.fullmatch(r"-l[fv]*|-lf|-F", texts[0]) and "-D" not in texts:
        taking.kind = "reads"
        for at, text in enumerate(texts, start):
            if text.endswith("f") and at + 1 < len(taking.words):
                note_role(taking, "read", at + 1)
        return
    if any(re.fullmatch(r"-[DwYskIRM]", text) for text in texts):
        taking.worsen(
            "dangerous", code="runs_program", why="ssh-keygen loads a library, or works with credentials", at=0
        )
    for at, text in enumerate(texts, start):
        if text == "-f" and at + 1 < len(taking.words):
            note_role(taking, "write", at + 1)
    if "-f" not in texts:
        taking.worsen("dangerous", code="secret", why="it makes or changes keys of the account", at=0)
