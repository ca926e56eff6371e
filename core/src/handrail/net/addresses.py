"""Classification of IP addresses: which are public, reachable from all of the internet, and what the others are.

Sources: the IANA registries of special-purpose addresses (RFC 6890 and its successors), and the documentation of cloud
providers for metadata services.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from handrail.api.verdict import Reason

__all__ = ["find_address_hint"]

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

# Where cloud machines ask for their own credentials. Some of these are public by number.
METADATA_ADDRESSES: frozenset[IPAddress] = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192",
        "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
    )
)  # fmt: skip


def _parse_networks(what: str, *texts: str) -> tuple[tuple[IPNetwork, str], ...]:
    return tuple((ip_network(text), what) for text in texts)


DOCUMENTATION_NOTE = "an address for documentation"
# The first that holds an address names it.
SPECIAL_NETWORKS: tuple[tuple[IPNetwork, str], ...] = (
    *_parse_networks("the unspecified address", "0.0.0.0/32", "::/128"),
    *_parse_networks("an address of this host", "0.0.0.0/8"),
    *_parse_networks("a loopback address", "127.0.0.0/8", "::1/128"),
    *_parse_networks("a link-local address", "169.254.0.0/16", "fe80::/10"),
    *_parse_networks("a private address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    *_parse_networks("a private address", "64:ff9b:1::/48"),
    *_parse_networks("an address behind a provider's NAT", "100.64.0.0/10"),
    *_parse_networks("a multicast address", "224.0.0.0/4", "ff00::/8"),
    *_parse_networks("the broadcast address", "255.255.255.255/32"),
    *_parse_networks(
        DOCUMENTATION_NOTE, "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"
    ),
    *_parse_networks("a benchmarking address", "198.18.0.0/15", "2001:2::/48"),
    *_parse_networks("a reserved address", "192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "100::/64", "2001::/23"),
)
GLOBAL_V6 = IPv6Network("2000::/3")

# Where an IPv4 address stands in an IPv6 one: its prefix, and how many bits are behind it.
EMBEDDING_NETWORKS: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("::/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)
TEREDO_NETWORK = IPv6Network("2001::/32")
# The interface part of an ISATAP address.
ISATAP_MARKS = frozenset((0x00005EFE, 0x02005EFE))
WORD_MASK = 0xFFFFFFFF

# The codes of the reasons that a person lifts by naming the host, and by nothing else: connections are held to the same list.
NON_PUBLIC_CODES = frozenset(("private_address", "private_name", "metadata_address", "documentation_address"))
ALLOW_HINT = (
    "a person can allow it by naming the host or its network in their own config.toml, under [network] as allow_private"
)

NUMBER_PATTERN = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+")


def find_non_public_reason(address: IPAddress) -> Reason | None:
    """Return why no call may go to an address without permission, or None for a public one.

    An IPv4 address inside an IPv6 one is judged as well.
    """
    if address in METADATA_ADDRESSES:
        return Reason("metadata_address", f"{address} is the metadata service of a cloud machine")
    inner = tuple(iter_embedded_ipv4(address))
    for each in inner:
        if (why := find_non_public_reason(each)) is not None:
            return Reason(why.code, f"{address} stands for {each}: {why.text}")
    what = next((what for network, what in SPECIAL_NETWORKS if address in network), None)
    if what is None and isinstance(address, IPv6Address) and not inner and address not in GLOBAL_V6:
        what = "a reserved address"
    if what is None:
        return None
    return Reason("documentation_address" if what is DOCUMENTATION_NOTE else "private_address", f"{address} is {what}")


def find_address_hint(code: str) -> str | None:
    """Return the hint on what the user can do about a refusal with this code, or None if it is not about an address."""
    return ALLOW_HINT if code in NON_PUBLIC_CODES else None


def iter_embedded_ipv4(address: IPAddress) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address represents or embeds."""
    if not isinstance(address, IPv6Address):
        return
    number = int(address)
    # The first addresses of that prefix are the unspecified and the loopback one.
    if number > 1:
        yield from (
            IPv4Address(number >> bits & WORD_MASK) for network, bits in EMBEDDING_NETWORKS if address in network
        )
    if address in TEREDO_NETWORK:
        yield IPv4Address(number >> 64 & WORD_MASK)
        yield IPv4Address(~number & WORD_MASK)
    if number >> 32 & WORD_MASK in ISATAP_MARKS:
        yield IPv4Address(number & WORD_MASK)


def parse_browser_ipv4(host: str) -> IPv4Address | None:
    """Return the IPv4 address that browsers see in a host that ends in a number; None for a name.

    It may be in decimal, octal or hex, in one to four parts. Raises ValueError for numbers that do not form an address.
    Source: https://url.spec.whatwg.org/#concept-ipv4-parser
    """
    parts = host.removesuffix(".").split(".")
    if not NUMBER_PATTERN.fullmatch(parts[-1]):
        return None
    if len(parts) > 4 or not all(NUMBER_PATTERN.fullmatch(part) for part in parts):
        raise ValueError(host)
    *heads, last = (_parse_ipv4_part(part) for part in parts)
    if any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        raise ValueError(host)
    return IPv4Address(sum(head << 8 * (3 - at) for at, head in enumerate(heads)) + last)


def _parse_ipv4_part(part: str) -> int:
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") and len(part) > 1 else 10)


def is_address_allowed(address: IPAddress, allowed: Iterable[str]) -> bool:
    """Return True if the user allowed an address, either itself or by a network (`192.168.1.0/24`).

    A metadata service must be allowed by its own address.
    """
    for text in allowed:
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            continue
        if address in network and (network.num_addresses == 1 or address not in METADATA_ADDRESSES):
            return True
    return False
