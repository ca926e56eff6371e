"""URLs as calls name them: where they lead, and what speaks against going there.

Only the text is looked at here; what a name answers is asked when a connection is made (`handrail.net.resolver`). An address is read as browsers
read it (https://url.spec.whatwg.org), and refused where other programs would read another one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from urllib.parse import quote, unquote, urljoin

from handrail.api.verdict import Decision, Reason
from handrail.net import addresses, hostnames

__all__ = ["DEFAULT_PORTS", "evaluate_host", "evaluate_url", "find_url_place", "join_url"]

MAX_LENGTH = 8192
DEFAULT_PORTS = {"http": 80, "https": 443}
SCHEME_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
CONTROL_CHARS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
SPACE_CHARS = re.compile(r"\s")
BARE_IPV6 = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
ANY_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# `[user@]host:path`, as scp, git and rsync take it.
PLACE_AND_PATH = re.compile(r"((?:[^/:@]*@)?(?:[^/:@\[\]]+|\[[^/\[\]]*\])):(?![0-9]*(?:[/?#]|$))(.*)", re.DOTALL)
PORT_PATTERN = re.compile(r"[1-9][0-9]{0,4}")
# What no host may hold; percent signs among them, though browsers decode them.
FORBIDDEN_HOST_CHARS = re.compile(r"[\x00-\x20\"#%/:<>?@\[\\\]^`{|}\x7f]")
# Ports that browsers refuse: other services take what is sent there for their own commands. Source: https://fetch.spec.whatwg.org/#port-blocking
BLOCKED_PORTS = frozenset(
    (
        1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
        110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
        531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3306, 3389, 3659,
        4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 10080,
        11211, 27017,
    )
)  # fmt: skip
MAX_QUERY = 256
MAX_LABEL = 40
MAX_HOST = 100
MAX_SEGMENT = 120
# Names of parameters that carry something away.
DATA_PARAMETERS = frozenset(
    (
        "data", "payload", "exfil", "dump", "secret", "secrets", "leak", "content", "contents", "body", "file", "env",
        "b64", "base64", "password", "passwd", "pwd", "token", "api_key", "apikey", "key", "credentials", "cookie",
        "cookies", "stolen", "loot",
    )
)  # fmt: skip
MIN_CARRIED_CHARS = 8
ALPHANUMERIC_RUN = re.compile(r"[A-Z0-9]{12,}|[A-Za-z0-9]{16,}")
LONG_RUN = 24
# Right behind the host, without a path between: old programs take the rest for a part of the host.
HOST_BEHIND = re.compile(r"[?#]([^/]*@|[^=&/]*\.[A-Za-z]{2,}([/:]|$))")
PLAIN_WORDS = re.compile(r"[a-z]+([-_+/=][a-z0-9]+)*|[0-9-]+")


@dataclass(frozen=True, slots=True)
class UrlView:
    """Evaluation of a URL from its text.

    `suggestion` ALLOW means that the URL itself raises no objection. `floor` is as in an opinion. `url` is what will be
    requested, in ASCII; it, `host` and `port` are empty or 0 if the URL could not be parsed.
    """

    suggestion: Decision
    floor: Decision | None = None
    reasons: tuple[Reason, ...] = ()
    scheme: str = ""
    host: str = ""
    port: int = 0
    url: str = ""

    @property
    def place(self) -> str:
        """`host`, or `host:port` where the port is not the scheme's own; of an IPv6 address with brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (0, DEFAULT_PORTS.get(self.scheme)) else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        return self.scheme, self.host, self.port


def evaluate_url(text: str, *, allow_private: Collection[str] = (), scheme: str | None = None) -> UrlView:
    """Return what speaks against requesting the URL `text`.

    `allow_private`: the user's private hosts, addresses and networks that may be reached. `scheme`: used if the text
    has none, as command-line programs do.
    """
    text = text.strip(" ")
    if (why := _find_unreadable_reason(text)) is not None:
        return _build_refused_view(why)
    if scheme is not None and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(//|(?![0-9]))", text):
        text = f"{scheme}://{text}"
    found = SCHEME_PREFIX.match(text)
    if found is None:
        return _build_refused_view(Reason("no_scheme", f"{text!r} does not begin with https:// or http://"))
    name, rest = found[1].lower(), text[found.end() :]
    if name in DEFAULT_PORTS:
        return _evaluate_web_url(name, rest, allow_private)
    return _evaluate_other_scheme(name, rest, allow_private)


def join_url(base: str, text: str) -> str:
    """Resolve a reference in a document from `base` to a URL.

    If the text is not a valid reference, it is returned as it is, and `evaluate_url` will report it.
    """
    try:
        return urljoin(base, text)
    except ValueError:
        return text


def find_url_place(text: str) -> str:
    """Return the destination, `host` or `host:port`, of a URL of any scheme, a host name, or `[user@]host:path`.

    The format is that of `UrlView.place`. Empty if it cannot be determined, or if programs disagree about it.
    """
    text = text.strip(" ")
    if BARE_IPV6.fullmatch(text):
        return evaluate_host(text).place
    if (named := ANY_SCHEME.match(text)) is not None:
        scheme = named[1].lower()
        return evaluate_url(f"{scheme if scheme in DEFAULT_PORTS else 'http'}://{text[named.end() :]}").place
    if (copied := PLACE_AND_PATH.fullmatch(text)) is not None:
        # To `scp` the host stands before the colon, to `curl` behind the @.
        text = copied[1] if "@" not in copied[2].partition("/")[0] else ""
    return evaluate_url(f"http://{text}").place


def evaluate_host(host: str, *, allow_private: Collection[str] = ()) -> UrlView:
    """Return what speaks against connecting to a host, given as a name or an address (with or without brackets)."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return _evaluate_host_text(f"[{bare}]" if ":" in bare else bare, allow_private)


def _build_refused_view(*reasons: Reason) -> UrlView:
    return UrlView(Decision.DENY, Decision.DENY, reasons)


def _find_unreadable_reason(text: str) -> Reason | None:
    if not text:
        return Reason("empty_address", "the address is empty")
    if len(text) > MAX_LENGTH:
        return Reason("long_address", f"the address is longer than {MAX_LENGTH} characters")
    if CONTROL_CHARS.search(text):
        return Reason("control_character", "the address holds a control character, which some programs drop")
    if SPACE_CHARS.search(text):
        return Reason(
            "space", "the address holds a space; programs disagree about where it ends (a space is written %20)"
        )
    return None


def _evaluate_other_scheme(scheme: str, rest: str, allow_private: Collection[str]) -> UrlView:
    """Evaluate a URL of another scheme.

    Of these, only those that show a web page, and the empty page, may be requested.
    """
    if scheme in ("view-source", "blob"):
        inner = evaluate_url(rest, allow_private=allow_private)
        if inner.suggestion is Decision.DENY or inner.scheme not in DEFAULT_PORTS:
            return replace(inner, suggestion=Decision.DENY, floor=Decision.DENY)
        odd = Reason("browser_scheme", f"{scheme}: only means something inside a browser")
        return replace(
            inner,
            suggestion=Decision.CONFIRM,
            reasons=(odd, *inner.reasons),
            scheme=scheme,
            port=0 if inner.port == DEFAULT_PORTS[inner.scheme] else inner.port,
            url=f"{scheme}:{inner.url}",
        )
    if scheme == "about" and rest.lower() in ("blank", "srcdoc"):
        return UrlView(
            Decision.CONFIRM, None, (Reason("browser_scheme", "about: only means something inside a browser"),)
        )
    return _build_refused_view(Reason("scheme", f"{scheme}: is not http or https"))


def _evaluate_web_url(scheme: str, rest: str, allow_private: Collection[str]) -> UrlView:
    if not re.match(r"//[^/\\]", rest):
        return _build_refused_view(Reason("slashes", f"behind {scheme}: there are not exactly two slashes and a host"))
    authority = re.split(r"[/?#\\]", rest[2:], maxsplit=1)[0]
    tail = rest[2 + len(authority) :]
    if tail.startswith("\\"):
        return _build_refused_view(
            Reason("backslash", "a backslash stands where some programs end the host and others do not")
        )
    userinfo, at, place = authority.rpartition("@")
    if "@" in userinfo:
        return _build_refused_view(
            Reason("userinfo", "there are several @ in front of the path; programs disagree about the host")
        )
    host, port = _split_port(place)
    if port is not None and not (PORT_PATTERN.fullmatch(port) and int(port) <= 65535):
        return _build_refused_view(Reason("port", f"{port!r} is not a port"))
    known = _evaluate_host_text(host, allow_private)
    if not known.host:
        return known
    number = DEFAULT_PORTS[scheme] if port is None else int(port)
    written = f"[{known.host}]" if ":" in known.host else known.host
    shown = written if number == DEFAULT_PORTS[scheme] else f"{written}:{number}"
    path = tail if tail.startswith("/") else f"/{tail}"
    url = f"{scheme}://{_quote_url(userinfo)}{at}{shown}{_quote_url(path)}"
    found = replace(known, scheme=scheme, port=number, url=url)
    ominous = list(_find_exfiltration_signs(tail, known.host, allow_private))
    odd = list(_find_oddities(found, tail, userinfo=bool(at)))
    return _add_reasons(found, odd=odd, ominous=ominous)


def _add_reasons(found: UrlView, *, odd: list[Reason], ominous: list[Reason]) -> UrlView:
    if not odd and not ominous:
        return found
    floors = [found.floor, Decision.CONFIRM if ominous else None]
    floors += [Decision.DENY if any(reason.code == "metadata_address" for reason in ominous) else None]
    floor = next((each for each in (Decision.DENY, Decision.CONFIRM) if each in floors), None)
    suggestion = Decision.DENY if Decision.DENY in (floor, found.suggestion) else Decision.CONFIRM
    return replace(found, suggestion=suggestion, floor=floor, reasons=(*found.reasons, *ominous, *odd))


def _split_port(place: str) -> tuple[str, str | None]:
    """Split host and port; the port is None if it is missing or empty."""
    if place.startswith("["):
        host, bracket, rest = place.partition("]")
        return host + bracket + (rest if not rest.startswith(":") else ""), rest[1:] or None if rest.startswith(
            ":"
        ) else None
    host, _, port = place.partition(":")
    return host, port or None


def _quote_url(text: str) -> str:
    return quote(
        text, safe="%/?#[]@!$&'()*+,;=:~|^`{}\"<>\\" if not text.isascii() else "".join(map(chr, range(33, 127)))
    )


def _evaluate_host_text(text: str, allow_private: Collection[str]) -> UrlView:
    """Return what speaks against a host, with its name or address as it will be requested."""
    if text.startswith("["):
        return _evaluate_ipv6(text, allow_private)
    if not text or FORBIDDEN_HOST_CHARS.search(text):
        return _build_refused_view(Reason("malformed_host", f"{text!r} is not the name of a host"))
    name = hostnames.parse_host_name(text)
    try:
        address = addresses.parse_browser_ipv4(name.ascii)
    except ValueError:
        return _build_refused_view(Reason("malformed_host", f"{text!r} ends in a number and is no address"))
    if address is not None:
        return _evaluate_address(address, allow_private, plain=text.removesuffix(".") == str(address))
    if name.refused is not None:
        return _build_refused_view(name.refused)
    found = UrlView(Decision.ALLOW, host=name.ascii)
    if (
        not hostnames.is_name_listed(name.ascii, allow_private)
        and (why := hostnames.find_local_reason(name.ascii)) is not None
    ):
        return replace(found, suggestion=Decision.DENY, floor=Decision.DENY, reasons=(why,))
    if name.doubtful is not None:
        return replace(found, suggestion=Decision.CONFIRM, floor=Decision.CONFIRM, reasons=(name.doubtful,))
    return found


def _evaluate_ipv6(text: str, allow_private: Collection[str]) -> UrlView:
    try:
        if not text.endswith("]") or "%" in text:
            raise ValueError(text)
        address = IPv6Address(text[1:-1])
    except ValueError:
        return _build_refused_view(
            Reason("malformed_host", f"{text!r} is not an IPv6 address that may be asked for (zones may not)")
        )
    found = _evaluate_address(address, allow_private, plain=True)
    if found.suggestion is Decision.ALLOW and any(addresses.iter_embedded_ipv4(address)):
        why = Reason("embedded_address", f"{address} stands for an IPv4 address")
        return replace(found, suggestion=Decision.CONFIRM, reasons=(why,))
    return found


def _evaluate_address(address: addresses.IPAddress, allow_private: Collection[str], *, plain: bool) -> UrlView:
    found = UrlView(Decision.ALLOW, host=str(address))
    why = addresses.find_non_public_reason(address)
    if not plain:
        odd = Reason("odd_address", f"the host is {address} in a form that programs read differently")
        reasons = (odd,) if why is None else (odd, why)
        return replace(found, suggestion=Decision.DENY, floor=Decision.DENY, reasons=reasons)
    if why is None or addresses.is_address_allowed(address, allow_private):
        return found
    decision = Decision.CONFIRM if why.code == "documentation_address" else Decision.DENY
    return replace(found, suggestion=decision, floor=decision, reasons=(why,))


def _find_oddities(found: UrlView, tail: str, *, userinfo: bool) -> Iterator[Reason]:
    """Yield oddities that the user may well want, once they know of them."""
    if found.port in BLOCKED_PORTS:
        yield Reason("port_of_another_protocol", f"port {found.port} is that of another protocol")
    elif found.port != DEFAULT_PORTS[found.scheme]:
        yield Reason("odd_port", f"port {found.port} is not the usual one")
    if userinfo:
        yield Reason("userinfo", f"what stands before the @ is a user's name; the host is {found.host}")
    if "\\" in tail.partition("?")[0] or HOST_BEHIND.match(tail):
        yield Reason("parsers_differ", "programs disagree about how to read what is behind the host")
    if found.host[-1].isalpha() or hostnames.PUNYCODE_PREFIX in found.host:
        yield from hostnames.list_host_doubts(found.host)


def _find_exfiltration_signs(tail: str, host: str, allow_private: Collection[str]) -> Iterator[Reason]:
    """Yield signs that a URL carries data away, or sends a server to where the call itself may not go."""
    path, _, query = tail.partition("#")[0].partition("?")
    if (
        _is_carrying_data(path, query)
        or len(host) > MAX_HOST
        or any(len(label) > MAX_LABEL for label in host.split("."))
    ):
        yield Reason("opaque_query", "the address holds long or coded data, which the host would get")
    for value in re.split(r"[&;=]", query):
        inner = unquote(value)
        if re.match(r"https?:", inner, re.IGNORECASE) and not SPACE_CHARS.search(inner):
            reasons = _find_inner_reasons(inner, allow_private)
            yield from (Reason(reason.code, f"the address names another one: {reason.text}") for reason in reasons)


def _find_inner_reasons(text: str, allow_private: Collection[str]) -> tuple[Reason, ...]:
    found = SCHEME_PREFIX.match(text)
    assert found is not None
    authority = re.split(r"[/?#\\]", text[found.end() :].lstrip("/\\"), maxsplit=1)[0].rpartition("@")[2]
    known = _evaluate_host_text(_split_port(authority)[0], allow_private)
    return known.reasons if known.suggestion is Decision.DENY else ()


def _is_carrying_data(path: str, query: str) -> bool:
    if len(query) > MAX_QUERY or any(len(part) > MAX_SEGMENT and _is_opaque(unquote(part)) for part in path.split("/")):
        return True
    for pair in re.split(r"[&;]", query):
        name, equals, value = pair.partition("=")
        value = unquote(value if equals else name)
        if _is_opaque(value) or (
            equals
            and name.lower() in DATA_PARAMETERS
            and len(value) >= MIN_CARRIED_CHARS
            and not PLAIN_WORDS.fullmatch(value)
        ):
            return True
    return False


def _is_opaque(value: str) -> bool:
    """Return True if a text looks encoded: a long run of letters and digits that do not form words."""
    for run in ALPHANUMERIC_RUN.findall(value):
        if any(map(str.isdigit, run)) and any(map(str.isalpha, run)) and (not run.islower() or len(run) >= LONG_RUN):
            return True
    return False
