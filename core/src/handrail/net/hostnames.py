"""Names of hosts: as a resolver will get them, and whether they are what they look like."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from handrail.api.verdict import Reason
from handrail.glob_match import is_glob_match
from handrail.net import addresses

__all__ = ["is_same_or_subdomain", "parse_host_name"]

MAX_NAME = 253
HOST_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
PUNYCODE_PREFIX = "xn--"
# Ideographic full stops, which IDNA takes for dots.
DOT_TRANSLATION = str.maketrans(dict.fromkeys("\u3002\uff0e\uff61", "."))
# Old and new IDNA read these as different names.
IDNA_DEVIATIONS = frozenset("\u00df\u03c2")
# Shown as nothing, though they are no format characters.
BLANK_CHARS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")

# Scripts that are written together with Latin letters and each other.
MIXABLE_SCRIPTS = (
    frozenset(("LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")),
    frozenset(("LATIN", "CJK", "HANGUL")),
    frozenset(("LATIN", "CJK", "BOPOMOFO")),
)
# Letters of other scripts that look like Latin ones; a name of nothing else is made to be mistaken.
LATIN_TWINS = frozenset("асԁеһіјӏорԛѕԝхуъьҽпгѵѡкмтвнαικνορτυωηγօոսցհյզ")
# Phonetic letters and others that no orthography of today uses in names.
ODD_LATIN = re.compile(
    "[\u0131\u0138\u0180\u0184\u0185\u0250-\u02ff\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f]"
)

# Names that never leave a machine or a network.
LOCAL_ENDINGS = frozenset(
    (
        "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "test",
        "invalid", "svc", "onion", "consul", "docker", "kube", "workgroup", "fritz.box", "speedport.ip", "cluster",
    )
)  # fmt: skip
METADATA_NAMES = frozenset(
    (
        "metadata.google.internal", "metadata.goog", "metadata.azure.internal", "metadata.tencentyun.com",
        "metadata.packet.net", "metadata.platformequinix.com", "instance-data.ec2.internal", "instance-data",
    )
)  # fmt: skip
# Services whose names answer with any address that is asked for, the own machine's among them.
WILDCARD_DNS_DOMAINS = frozenset(
    (
        "nip.io", "sslip.io", "xip.io", "traefik.me", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "local.gd",
        "localho.st", "1u.ms", "rbndr.us", "rebind.network", "rebind.it", "ip.addr.tools", "backname.io",
    )
)  # fmt: skip
URL_SHORTENERS = frozenset(
    (
        "bit.ly", "t.co", "tinyurl.com", "goo.gl", "ow.ly", "is.gd", "v.gd", "buff.ly", "rb.gy", "cutt.ly",
        "rebrand.ly", "shorturl.at", "lnkd.in", "t.ly", "bl.ink", "tiny.cc", "s.id", "trib.al", "dlvr.it", "soo.gd",
        "clck.ru", "qr.ae", "adf.ly", "bc.vc", "j.mp", "amzn.to", "fb.me", "g.co", "aka.ms", "git.io",
        "wp.me", "db.tt", "po.st", "mcaf.ee", "x.co", "short.io", "tr.im", "surl.li", "u.to", "shorte.st",
    )
)  # fmt: skip
# A name that goes on behind one of these looks like the site before it.
COMMON_TLDS = frozenset(("com", "net", "org", "gov", "edu", "mil"))
DOTTED_QUAD = re.compile(r"(?<![0-9])(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})(?![0-9])")
HEX_QUAD = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}(?![0-9a-z])")


@dataclass(frozen=True, slots=True)
class HostName:
    """A host's name. `ascii` is what is asked for, lower case and in punycode; `refused` and `doubtful` say what is wrong with it."""

    ascii: str
    refused: Reason | None = None
    doubtful: Reason | None = None


def parse_host_name(text: str) -> HostName:
    """Return the host name that browsers read in a URL's host, mapped according to IDNA."""
    if text.isascii():
        name, doubtful = text.lower(), None
    else:
        name, doubtful = _map_idna(text)
    labels = name.removesuffix(".").split(".")
    try:
        encoded = ".".join(_encode_label(label) for label in labels)
    except UnicodeError:
        return HostName(name, Reason("malformed_host", f"{text!r} is not the name of a host"))
    if len(encoded) > MAX_NAME or not all(HOST_LABEL.fullmatch(label) for label in encoded.split(".")):
        return HostName(encoded, Reason("malformed_host", f"{text!r} is not the name of a host"))
    if any(_is_invisible(character) for character in text):
        return HostName(
            encoded, Reason("invisible_character", f"the host holds characters that are not seen: {text!r}")
        )
    return HostName(encoded, None, _find_look_alike(encoded) or doubtful)


def find_local_reason(name: str) -> Reason | None:
    """Return why a name is local to this machine or its network; None for a name that may be public."""
    if name in METADATA_NAMES:
        return Reason("metadata_address", f"{name!r} is the metadata service of a cloud machine")
    if "." not in name:
        return Reason("private_name", f"{name!r} is a name of the local network")
    if any(is_same_or_subdomain(name, ending) for ending in LOCAL_ENDINGS):
        return Reason("private_name", f"{name!r} is a name of this machine or its network")
    if any(is_same_or_subdomain(name, ending) for ending in WILDCARD_DNS_DOMAINS) and not _has_only_public_addresses(
        name
    ):
        return Reason("private_name", f"{name!r} may answer with an address of this machine or its network")
    return None


def list_host_doubts(name: str) -> list[Reason]:
    """Return what the user should know about a public name before a call goes there."""
    found: list[Reason] = []
    if any(is_same_or_subdomain(name, shortener) for shortener in URL_SHORTENERS):
        found.append(Reason("shortener", f"{name!r} leads on to another address, which is not seen here"))
    if (site := _find_site_prefix(name.split("."))) is not None:
        found.append(Reason("name_within_name", f"{name!r} begins like {site!r} and is another site"))
    if _find_embedded_addresses(name):
        found.append(Reason("address_in_name", f"{name!r} has a number in it that is an address"))
    return found


def is_same_or_subdomain(name: str, ending: str) -> bool:
    """Return True if a name is `ending` or a subdomain of it, comparing entire labels from the right."""
    return name == ending or name.endswith(f".{ending}")


def is_name_listed(name: str, patterns: Iterable[str]) -> bool:
    """Return True if one of the patterns matches this name; `*.lan` matches all names below `lan`."""
    return any(is_glob_match(name, pattern.lower().removesuffix(".")) for pattern in patterns)


def decode_punycode(name: str) -> str:
    """Decode a punycode name; a name that cannot be decoded is returned unchanged."""
    try:
        return ".".join(map(_decode_label, name.split(".")))
    except UnicodeError:
        return name


def _map_idna(text: str) -> tuple[str, Reason | None]:
    """Return the name mapped according to IDNA, with a doubt if that changes more than case and composition."""
    seen = "".join(character for character in text if not _is_invisible(character))
    mapped = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).translate(DOT_TRANSLATION).lower())
    if mapped != unicodedata.normalize("NFC", text).lower():
        return mapped, Reason("disguised_host", f"the host is written {text!r} and is {mapped!r}")
    if not IDNA_DEVIATIONS.isdisjoint(mapped):
        return mapped, Reason("disguised_host", f"programs disagree about which name {text!r} is")
    return mapped, None


def _is_invisible(character: str) -> bool:
    return character in BLANK_CHARS or "\ufe00" <= character <= "\ufe0f" or unicodedata.category(character) == "Cf"


def _encode_label(label: str) -> str:
    """Return the label in punycode; raises UnicodeError if it is not a valid label."""
    decoded = _decode_label(label)
    encoded = decoded if decoded.isascii() else PUNYCODE_PREFIX + decoded.encode("punycode").decode("ascii")
    mapped = unicodedata.normalize("NFKC", decoded).lower() == decoded
    if not mapped or (encoded != label and decoded != label) or any(unicodedata.category(c)[0] == "C" for c in decoded):
        raise UnicodeError(label)
    return encoded


def _decode_label(label: str) -> str:
    return (
        label.removeprefix(PUNYCODE_PREFIX).encode("ascii").decode("punycode")
        if label.startswith(PUNYCODE_PREFIX)
        else label
    )


def _find_look_alike(name: str) -> Reason | None:
    if PUNYCODE_PREFIX not in name:
        return None
    labels = [_decode_label(label) for label in name.split(".")]
    strange = [label for label in labels if not label.isascii() and _is_mistakable(label, labels[-1])]
    return Reason("look_alike", f"{'.'.join(labels)!r} may look like another name; it is {name}") if strange else None


def _is_mistakable(label: str, last: str) -> bool:
    letters = [character for character in label if unicodedata.category(character)[0] == "L"]
    if any(unicodedata.category(character)[0] not in "LNMP" for character in label) or ODD_LATIN.search(label):
        return True
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in letters}
    if len(scripts) > 1:
        return not any(scripts <= mix for mix in MIXABLE_SCRIPTS)
    # A name of another script under an ending of that script is at home there.
    return scripts != {"LATIN"} and last.isascii() and not set(letters) - LATIN_TWINS


def _find_site_prefix(labels: Sequence[str]) -> str | None:
    """Return the site that a longer name begins with; `example.com.au` does not count as one."""
    for at in range(1, len(labels) - 1):
        country = at == len(labels) - 2 and len(labels[-1]) == 2
        if labels[at] in COMMON_TLDS and not country:
            return ".".join(labels[: at + 1])
    return None


def _find_embedded_addresses(name: str) -> list[IPv4Address]:
    dotted = [
        ".".join(map(str, map(int, quad)))
        for quad in DOTTED_QUAD.findall(name)
        if all(int(part) < 256 for part in quad)
    ]
    hexed = [
        found
        for found in HEX_QUAD.findall(name)
        if any(is_same_or_subdomain(name, ending) for ending in WILDCARD_DNS_DOMAINS)
    ]
    return [IPv4Address(each) for each in dotted] + [IPv4Address(int(each, 16)) for each in hexed]


def _has_only_public_addresses(name: str) -> bool:
    found = _find_embedded_addresses(name)
    return bool(found) and all(addresses.find_non_public_reason(each) is None for each in found)
