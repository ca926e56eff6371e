"""Words of programs that inspect the running system: what they look at, and what would change it."""

from __future__ import annotations

import ipaddress
import re

from handrail.redaction import is_secret_name
from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role

LSOF_PLAIN = frozenset("abhlnNOPRtUvVwXEQC?")
LSOF_VALUED = frozenset("cdpu")
# Each takes the next word for its value, unless that begins with a dash or plus.
LSOF_OPTIONAL = frozenset("FgiLorsSTxK")
# Those that select open files which may be connections, and those with which no host of one is shown by its name. `-i` counts where it
# names neither a port nor an address: one that does, for which LSOF_FEW stands, shows the hosts of few connections.
LSOF_CONNECTIONS = frozenset("cdgipu")
LSOF_NUMERIC = frozenset("nthv?")
LSOF_FEW = "i:"
FUSER_PLAIN = frozenset("acfIlmMsuvVw46")
FUSER_LONG = frozenset((
    "--all", "--inode", "--ismountpoint", "--ipv4", "--ipv6", "--list-signals", "--mount", "--silent", "--user", "--verbose", "--version",
))  # fmt: skip
PORT = re.compile(r"[\w-]+")
# An address that is looked up nowhere, and what a filter of `ss` holds beside addresses and ports.
WITH_PORT = re.compile(r"(?P<host>\*?|\d+\.\d+\.\d+\.\d+|\[[^\]]*\])(?P<prefix>/\d+)?(?::[\w*-]*)?")
FILTER_WORDS = frozenset((
    "state", "exclude", "all", "connected", "synchronized", "bucket", "big", "established", "estab", "syn-sent", "syn-recv", "fin-wait-1",
    "fin-wait-2", "time-wait", "closed", "close", "unconn", "close-wait", "last-ack", "listening", "listen", "closing", "bound-inactive",
    "and", "or", "not", "src", "dst", "sport", "dport", "dev", "fwmark", "cgroup", "autobound", "eq", "ne", "neq", "ge", "geq", "le", "leq",
    "gt", "gtr", "lt", "lss", "is",
))  # fmt: skip
# The forms of a log in which an entry is its message, and no other fields are shown.
LOG_FORMATS = re.compile(r"short(?:-[a-z-]+)?|with-unit|cat|help")
# The field that has the memory of a program that crashed, and what stands for one that is not certain.
CORE_FIELD = "COREDUMP"
UNKNOWN_FIELD = "?"
SHOWS = re.compile(r"s|sh|show|l|li|ls|list|lst|g|get|help")
# Of programs that show one device or all: the options that show, and how many devices may follow.
DEVICE_QUERIES = {
    "ifconfig": re.compile(r"-[asv]+"),
    "iwconfig": re.compile(r"-{3}never"),
    "mii-tool": re.compile(r"-v+|--verbose"),
    "ethtool": re.compile(r"-[acgiklmnPSTux]|--(show-[\w-]+|driver|statistics|module-info|json)"),
}
TABLE_QUERIES = {
    "arp": re.compile(r"-[aenv]+|--(all|verbose|numeric)"),
    "route": re.compile(r"-[enNv46]+|--(extend|numeric|verbose)"),
    "ipvsadm": re.compile(r"-[lLn]+|--(list|numeric|stats|rate|exact)"),
    "brctl": re.compile(r"show(macs|stp)?|[a-z][\w.@-]*"),
    "rfkill": re.compile(r"list|[a-z]+|\d+|-[Jnr]|--(json|noheadings|raw|output-all)"),
    "iw": re.compile(r"dev|phy|list|event|info|link|reg|get|station|dump|survey|power_save|[a-z]+\d[\w.@-]*"),
}
# Words with which the last three change something.
TABLE_CHANGES = re.compile(
    r"(un)?block|toggle|(add|del)(br|if)|set\w*|connect|disconnect|del|add|scan|event|ibss|ap|mesh|wowlan|interface"
)
# With one of these, programs that show hosts by their names look none up.
NUMERIC = re.compile(r"-[a-zA-Z46]*n[a-zA-Z46]*|--numeric(-hosts)?|-[isV]+|--(interfaces|statistics|version|help)")
OBJECT_QUERIES = {
    "tc": re.compile(r"qdisc|class|filter|chain|action|actions"),
    "bridge": re.compile(r"link|fdb|mdb|vlan|vni"),
}


def take_lsof(taking: ArgumentMatch, start: int) -> None:
    """Take `lsof [OPTIONS] [NAME…]`. `+D FOLDER` goes through a folder, and `-k`, `-m`, `-D` name files of other kinds."""
    given: set[str] = set()
    _take_lsof_words(taking, start, given)
    picks = any(named.role == "list" for named in taking.named) or not given.isdisjoint(("U", LSOF_FEW))
    if given.isdisjoint(LSOF_NUMERIC) and not (picks and given.isdisjoint(LSOF_CONNECTIONS)):
        taking.needs.add("network")


def _take_lsof_words(taking: ArgumentMatch, at: int, given: set[str]) -> None:
    """Take the words from `at` on, and collect the letters of options in `given`."""
    words = taking.words
    while at < len(words):
        text = words[at].text
        if text is None:
            taking.doubt(at)
        elif text == "--":
            for n in range(at + 1, len(words)):
                note_role(taking, "list", n)
            return
        elif text[:2] in ("+D", "+d"):
            at = _take_folder_option(taking, at)
        elif text.startswith("+") and len(text) > 1:
            if not re.fullmatch(r"\+(c\d+|L\d*|M|f[cfgGn]*)", text):
                taking.doubt(at)
        elif text.startswith("-") and len(text) > 1:
            at = _take_lsof_letters(taking, at, text, given)
        else:
            note_role(taking, "list", at)
        at += 1


def _take_folder_option(taking: ArgumentMatch, at: int) -> int:
    taking.needs.add("reads_list")
    text = taking.words[at].text or ""
    if len(text) > 2:
        note_role(taking, "list", at, text[2:])
        return at
    if at + 1 >= len(taking.words):
        taking.doubt(at)
        return at
    note_role(taking, "list", at + 1)
    return at + 1


def _take_lsof_letters(taking: ArgumentMatch, at: int, text: str, given: set[str]) -> int:
    """Match a cluster of letters and add them to `given`; return the index of the last word that is part of it."""
    words = taking.words
    for offset, letter in enumerate(text[1:], 1):
        if letter != "i":
            given.add(letter)
        if letter in LSOF_PLAIN:
            continue
        if letter not in LSOF_VALUED | LSOF_OPTIONAL:
            taking.doubt(at)
            return at
        if text[offset + 1 :]:
            _note_host_lookup(taking, letter, text[offset + 1 :], given)
            return at
        behind = words[at + 1] if at + 1 < len(words) else None
        if letter in LSOF_OPTIONAL and (behind is None or (behind.text or "").startswith(("-", "+"))):
            given.add(letter)
            return at
        _note_host_lookup(taking, letter, behind.text if behind is not None else None, given)
        if behind is None or behind.text is None or behind.glob:
            taking.doubt(min(at + 1, len(words) - 1))
        return min(at + 1, len(words) - 1)
    return at


def _is_numeric(text: str) -> bool:
    """Return True for an address of numbers with or without a port, a port alone, or a number: for these no name is looked up."""
    found = WITH_PORT.fullmatch(text)
    host = text if found is None else found["host"].strip("[]")
    if (text.isascii() and text.isdigit()) or (found is not None and host in ("", "*")):
        return True
    try:
        ipaddress.ip_network(host, strict=False)
    except ValueError:
        return False
    return True


def _note_host_lookup(taking: ArgumentMatch, letter: str, value: str | None, given: set[str]) -> None:
    """Note that a value of `-i` (`tcp@host:port`) has a host looked up, or, in `given`, that it leaves open which connections are shown."""
    _, named, place = (value or "").partition("@")
    if letter == "i" and named and not _is_numeric(place):
        taking.needs.add("network")
    if letter == "i":
        given.add(LSOF_FEW if named or ":" in (value or "") else letter)


def check_socket_filter(taking: ArgumentMatch) -> None:
    """Note that a filter of `ss` has a host looked up: any word in it that is neither its own nor an address of numbers."""
    before = ""
    for at in taking.operands:
        for token in re.split(r"[\s()!=<>&|]+", taking.words[at].text or "?"):
            own = token in FILTER_WORDS or before in ("dev", "fwmark", "cgroup")
            if token and not own and not _is_numeric(token):
                taking.needs.add("network")
            before = token or before


def check_host_names(taking: ArgumentMatch) -> None:
    """Note that the names of hosts are looked up, unless an option says that their addresses are shown."""
    if not any(NUMERIC.fullmatch(word.text or "") for word in taking.words[1:]):
        taking.needs.add("network")


def take_fuser(taking: ArgumentMatch, start: int) -> None:
    """Match `fuser [OPTIONS] NAME…`.

    `80/tcp`, and any name after `-n tcp`, is not a file. `80,host/tcp` causes a host lookup.
    """
    words = taking.words
    at = start
    ports = False
    while at < len(words):
        text = words[at].text
        if text is None:
            taking.doubt(at)
        elif text in ("-n", "--namespace") and at + 1 < len(words):
            at += 1
            ports = words[at].text in ("tcp", "udp")
        elif re.fullmatch(r"-n(tcp|udp)|--namespace=(tcp|udp)", text):
            ports = True
        elif (
            text == "--kill"
            or (re.fullmatch(r"-[a-z]+", text) and "k" in text)
            or re.fullmatch(r"-[A-Z]{3,}|-\d{1,2}", text)
        ):
            taking.worsen("dangerous", code="processes", why="it ends processes", at=at)
        elif text.startswith("-") and len(text) > 1:
            if text not in FUSER_LONG and not set(text[1:]) <= FUSER_PLAIN:
                taking.doubt(at)
        elif ports or re.search(r"/(tcp|udp)$", text):
            if not PORT.fullmatch(text.rpartition("/")[0] or text):
                taking.needs.add("network")
        else:
            note_role(taking, "list", at)
        at += 1


def take_addresses(taking: ArgumentMatch, start: int) -> None:
    """Take the words of `ifconfig`, `arp`, `tc` and their like: without words, or with some that show, they show."""
    texts = [word.text or "?" for word in taking.words[start:]]
    if taking.path in ("arp", "route"):
        check_host_names(taking)
    if all(re.fullmatch(r"-[vV]|--(version|help)", text) for text in texts) or _is_network_query(taking.path, texts):
        return
    taking.worsen("dangerous", code="system_change", why=f"{taking.path} changes the network", at=0)


def _is_network_query(program: str, texts: list[str]) -> bool:
    if (options := DEVICE_QUERIES.get(program)) is not None:
        devices = [text for text in texts if not options.fullmatch(text)]
        return len(devices) <= 1 and all(re.fullmatch(r"[a-z][\w.@:-]*", text) for text in devices)
    if (shown := TABLE_QUERIES.get(program)) is not None:
        changes = program in ("brctl", "rfkill", "iw") and any(map(TABLE_CHANGES.fullmatch, texts))
        return not changes and all(map(shown.fullmatch, texts))
    objects = OBJECT_QUERIES[program]
    rest = list(texts)
    while rest and re.fullmatch(
        r"-(s|d|j|p|c|o|t|stats|statistics|details|json|pretty|color|oneline|graph|g|iec|human)", rest[0]
    ):
        rest.pop(0)
    return (
        bool(rest)
        and objects.fullmatch(rest[0]) is not None
        and (len(rest) == 1 or SHOWS.fullmatch(rest[1]) is not None)
    )


def take_ip(taking: ArgumentMatch, start: int) -> None:
    """Take `ip [OPTIONS] OBJECT [show|list|get] …`."""
    texts = [word.text for word in taking.words[start:]]
    while texts and texts[0] is not None and texts[0].startswith("-"):
        if not re.fullmatch(
            r"-(4|6|s|d|o|j|p|c|br|brief|json|details|statistics|stats|pretty|color|color=\w+|oneline|h|human|V|N|0|t|ts)",
            texts[0],
        ):
            taking.doubt(len(taking.words) - len(texts))
            return
        texts.pop(0)
    if not texts:
        return
    known = re.fullmatch(
        r"a|addr|address|l|link|r|ro|route|ru|rule|n|neigh|neighbour|neighbor|maddr|mroute|netns|tunnel|tuntap|m|vrf|nexthop|token|ntable|netconf",
        texts[0] or "?",
    )
    if known and (len(texts) == 1 or SHOWS.fullmatch(texts[1] or "?")):
        return
    taking.worsen("dangerous", code="system_change", why="ip changes the network", at=0)


def check_sysctl(taking: ArgumentMatch) -> None:
    """Check `sysctl`: NAME=VALUE sets a value, and `../` in a name refers to other files."""
    for at in taking.operands:
        text = taking.words[at].text or "="
        if "=" in text:
            taking.worsen("dangerous", code="system_change", why="it changes a setting of the kernel", at=at)
        elif text.startswith("/") or ".." in text:
            taking.worsen("dangerous", code="secret", why=f"{text!r} is a file and no setting of the kernel", at=at)


def check_log_fields(taking: ArgumentMatch) -> None:
    """Check the fields shown of log entries, which hold the variables of programs that crashed.

    Complete entries and such fields require approval.
    """
    fields = [
        name for value in _list_option_values(taking, "--output-fields") for name in value.split(",") if name.strip()
    ]
    whole = not fields and not all(map(LOG_FORMATS.fullmatch, _list_option_values(taking, "-o", "--output")))
    if whole or any(map(_is_secret_field, (*fields, *_list_option_values(taking, "-F", "--field")))):
        taking.worsen("dangerous", code="secret", why="it shows variables of programs, which may be credentials")


def _list_option_values(taking: ArgumentMatch, *names: str) -> list[str]:
    """Return the values of an option, one for each time it was given; `UNKNOWN_FIELD` for an uncertain one."""
    given = ((at, value) for option, at, value in (*taking.before, *taking.options) if option.name in names)
    texts = (value if value is not None else taking.words[at].text for at, value in given)
    return [UNKNOWN_FIELD if text is None else text for text in texts]


def _is_secret_field(name: str) -> bool:
    field = name.strip().upper()
    return field in (CORE_FIELD, UNKNOWN_FIELD) or "ENVIRON" in field or is_secret_name(name)


def check_log_matches(taking: ArgumentMatch) -> None:
    """Check matches of the log: FIELD=VALUE, or the path of a program or device."""
    check_log_fields(taking)
    for at in taking.operands:
        if "/" in (taking.words[at].text or "/").partition("=")[0]:
            note_role(taking, "list", at)


def check_module_files(taking: ArgumentMatch) -> None:
    """Check kernel modules: a module is a name, or a file if it is written like one."""
    for at in taking.operands:
        text = taking.words[at].text or "/"
        if "/" in text or ".ko" in text:
            note_role(taking, "read", at)


def check_login_file(taking: ArgumentMatch) -> None:
    """Check `who`: a single operand is a file; two are `am i`."""
    if len(taking.operands) == 1:
        note_role(taking, "read", taking.operands[0])


def check_device_names(taking: ArgumentMatch) -> None:
    """Check device names and numbers; `+f FOLDER` makes iostat read another directory."""
    for at in taking.operands:
        if (taking.words[at].text or "+").startswith("+"):
            taking.doubt(at)


def check_query_only(taking: ArgumentMatch) -> None:
    """Check a setting: without an operand it is shown, with one it is changed."""
    if taking.operands:
        taking.worsen("dangerous", code="system_change", why=f"{taking.path} changes the system", at=taking.operands[0])


def check_nmcli(taking: ArgumentMatch) -> None:
    """Check `nmcli`: `wifi` and `hostname` change the network with any word but `list`.

    Passwords are shown by `--show-secrets`, which is not listed.
    """
    verb = taking.path.rpartition(" ")[2]
    texts = [taking.words[at].text for at in taking.operands]
    if verb == "connectivity" and texts:
        taking.needs.add("network")
    elif verb in ("wifi", "wwan", "hostname") and texts and (verb != "wifi" or texts[0] != "list"):
        taking.worsen("dangerous", code="system_change", why="it changes the network", at=0)
