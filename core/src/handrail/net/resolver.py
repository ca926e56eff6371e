"""Checked name resolution at connection time.

The text of a URL reveals little about its destination: a name may resolve to any address, to several, and to others a
second later. Therefore names are resolved when a connection is made, every answer is checked, and the connection goes
to an address that was checked.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from ipaddress import ip_address

import anyio

from handrail.api.verdict import Decision, Reason
from handrail.errors import Denied, Downstream
from handrail.net import addresses, hostnames, urls
from handrail.net.addresses import IPAddress

__all__ = ["HostResolver", "build_denied_error", "find_refusal_reason", "resolve_with_system"]

# Gives the addresses, as text, that a name has now.
HostResolver = Callable[[str, int], Awaitable[Sequence[str]]]

# What a page may load that comes from nowhere else.
IN_PAGE_SCHEMES = ("data:", "blob:", "about:blank", "about:srcdoc")
WEBSOCKET_SCHEMES = {"ws:": "http:", "wss:": "https:"}


async def resolve_with_system(host: str, port: int) -> Sequence[str]:
    """Return the addresses that this machine's resolver gives for a host.

    Raises `Downstream` if the name is unknown.
    """
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise Downstream(f"the name {host!r} is not known: {exc.strerror}") from exc
    return [str(address[0]) for *_, address in found]


async def resolve_public(
    host: str, port: int, *, allow_private: Collection[str] = (), resolver: HostResolver = resolve_with_system
) -> tuple[IPAddress, ...]:
    """Return all addresses of a host, in the resolver's order, after checking that each may be connected to.

    `host` is a name in ASCII or an address without brackets. Raises `Denied` if any of them is not public and the user
    has not allowed it.
    """
    found = (
        [_parse_address(host)] if _is_address(host) else [_parse_address(text) for text in await resolver(host, port)]
    )
    if not found:
        raise Downstream(f"the name {host!r} has no address")
    by_name = hostnames.is_name_listed(host, allow_private)
    for address in found:
        why = addresses.find_non_public_reason(address)
        # A name that a person allowed may be anywhere but at a service that gives credentials away.
        trusted = by_name and why is not None and why.code != "metadata_address"
        if why is not None and not trusted and not addresses.is_address_allowed(address, allow_private):
            what = why.text.removeprefix(f"{address} ")
            raise build_denied_error(
                Reason(why.code, f"{host!r} leads to {address}, which {what}" if host != str(address) else why.text)
            )
    return tuple(dict.fromkeys(found))


async def find_refusal_reason(
    url: str, *, navigation: bool, allow_private: Collection[str] = (), resolver: HostResolver = resolve_with_system
) -> Reason | None:
    """Return why a browser may not load a URL, or None if it may.

    Check every navigation, redirect and part of a page. A browser resolves names again on its own: where that matters,
    give it a proxy that connects through `resolve_public`.
    """
    lowered = url.lstrip().lower()
    if lowered.startswith(IN_PAGE_SCHEMES) and (not navigation or lowered.startswith("about:")):
        return None
    prefix = next((prefix for prefix in WEBSOCKET_SCHEMES if lowered.startswith(prefix)), None)
    if prefix is not None and not navigation:
        url = WEBSOCKET_SCHEMES[prefix] + url.lstrip()[len(prefix) :]
    view = urls.evaluate_url(url, allow_private=allow_private)
    if view.suggestion is Decision.DENY or view.scheme not in urls.DEFAULT_PORTS:
        return view.reasons[0]
    try:
        await resolve_public(view.host, view.port, allow_private=allow_private, resolver=resolver)
    except Denied as exc:
        return Reason(str(exc.details["reason"]), str(exc))
    except Downstream:
        # Nothing is reached by a name that leads nowhere.
        return None
    return None


def build_denied_error(reason: Reason) -> Denied:
    """Return the error for an address that is refused."""
    return Denied(
        reason.text,
        hint=addresses.find_address_hint(reason.code),
        details={"rule": f"effects:{reason.code}", "reason": reason.code},
    )


def _is_address(host: str) -> bool:
    try:
        _parse_address(host)
    except ValueError:
        return False
    return True


def _parse_address(text: str) -> IPAddress:
    # A zone says by which way a link-local address is reached; it is no part of it.
    return ip_address(text.partition("%")[0])
