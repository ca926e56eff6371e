"""What the text of an address makes of going there."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address

import pytest
from hypothesis import given, strategies as st

from handrail.api.verdict import Decision
from handrail.net import hostnames, urls


def codes(text: str, **given: object) -> set[str]:
    return {reason.code for reason in urls.evaluate_url(text, **given).reasons}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org",
        "HTTPS://Example.ORG/",
        "https://example.org./a",
        "http://example.org:80/",
        "https://example.org:443/a?b=c#d",
        "https://1.1.1.1/dns-query",
        "https://[2606:4700:4700::1111]/",
        "https://b\u00fccher.example/",
        "https://bu\u0308cher.example/",
        "https://\u65e5\u672c\u8a9e.jp/",
        "https://\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444/",
        "https://example.com.au/",
        "https://www.example.co.uk/",
        "https://docs.example.org/x/10.0.0.1/localhost?v=192.168.0.1",
        "https://git.example.org/r/commit/9fceb02d0ae598e95dc970b74767f19372d61af8",
        "https://example.org/search?q=How+To+Sort+A+List+In+Python3",
        "https://video.example/watch?v=dQw4w9WgXcQ",
        "https://example.org/x?id=123e4567-e89b-12d3-a456-426614174000",
        "https://example.org/?key=python",
        "https://example.org?name=a.b",
    ],
)
def test_plain_public_addresses_raise_no_objection(text: str) -> None:
    found = urls.evaluate_url(text)
    assert (found.suggestion, found.floor, found.reasons) == (Decision.ALLOW, None, ())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("https://example.org:8080/", "odd_port"),
        ("https://example.org:6379/", "port_of_another_protocol"),
        ("https://google.com@example.org/", "userinfo"),
        ("https://tinyurl.com/abc", "shortener"),
        ("https://example.org/?d=aGVsbG8gd29ybGQgdGhpcyBpcyAx", "opaque_query"),
        ("https://example.org/?password=hunter2hunter2", "opaque_query"),
        ("https://example.org/?" + "a=b&" * 100, "opaque_query"),
        (f"https://{'a1' * 25}.example.org/", "opaque_query"),
        ("https://p\u0430ypal.com/", "look_alike"),
        ("https://xn--pypal-4ve.com/", "look_alike"),
        ("https://\u0440\u0430\u0443\u0440\u0430\u04cf.com/", "look_alike"),
        ("https://\u0261oogle.com/", "look_alike"),
        ("https://example\u3002org/", "disguised_host"),
        ("https://\uff45xample.org/", "disguised_host"),
        ("https://stra\u00dfe.example/", "disguised_host"),
        ("https://example.com.evil.example/", "name_within_name"),
        ("https://10-0-0-1.example.org/", "address_in_name"),
        ("https://8.8.8.8.nip.io/", "address_in_name"),
        ("https://203.0.113.7/", "documentation_address"),
        ("https://[2001:db8::1]/", "documentation_address"),
        ("https://[::ffff:8.8.8.8]/", "embedded_address"),
        ("https://example.org#@other.example/", "parsers_differ"),
        ("https://example.org/a\\b", "parsers_differ"),
        ("https://evil.example?.example.org/", "parsers_differ"),
        ("view-source:https://example.org/", "browser_scheme"),
        ("about:blank", "browser_scheme"),
        ("https://example.org/?next=http%3A%2F%2Flocalhost%3A80%2F", "private_name"),
    ],
)
def test_what_a_person_should_see_first_is_confirmed(text: str, code: str) -> None:
    assert urls.evaluate_url(text).suggestion is Decision.CONFIRM
    assert code in codes(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty_address"),
        ("https://example.org/" + "a" * 9000, "long_address"),
        ("https://exa\tmple.org/", "control_character"),
        ("java\nscript:alert(1)", "control_character"),
        ("https://example.org/a b", "space"),
        ("example.org", "no_scheme"),
        ("//example.org/", "no_scheme"),
        ("\\\\host\\share", "no_scheme"),
        (" javascript:alert(1)", "scheme"),
        ("data:text/html,x", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("ftp://example.org/", "scheme"),
        ("ws://example.org/", "scheme"),
        ("view-source:file:///etc/passwd", "scheme"),
        ("blob:http://localhost/x", "private_name"),
        ("about:config", "scheme"),
        ("https:example.org", "slashes"),
        ("https:/example.org", "slashes"),
        ("https:///example.org", "slashes"),
        ("https:\\\\example.org", "slashes"),
        ("https://example.org\\@127.0.0.1/", "backslash"),
        ("https://a@b@example.org/", "userinfo"),
        ("https://example.org:99999/", "port"),
        ("https://example.org:0/", "port"),
        ("https://example.org:8a/", "port"),
        ("https://", "slashes"),
        ("https://exa%6dple.org/", "malformed_host"),
        ("https://a..b/", "malformed_host"),
        ("https://[::1/", "malformed_host"),
        ("https://[fe80::1%25eth0]/", "malformed_host"),
        ("https://\u2100.example/", "malformed_host"),
        ("https://xn--a.example/", "malformed_host"),
        ("https://1.2.3.4.5/", "malformed_host"),
        ("https://256.1.1.1/", "malformed_host"),
        ("https://exam\u00adple.org/", "invisible_character"),
        ("https://exam\u200bple.org/", "invisible_character"),
        ("https://0x08080808/", "odd_address"),
        ("https://134744072/", "odd_address"),
        ("https://010.8.8.8/", "odd_address"),
        ("https://127.1/", "odd_address"),
        ("https://127.1/", "private_address"),
        ("https://8.8.2056/", "odd_address"),
        ("https://localhost:3000/", "private_name"),
        ("https://x.localhost/", "private_name"),
        ("https://printer.lan/", "private_name"),
        ("https://intranet/", "private_name"),
        ("https://localtest.me/", "private_name"),
        ("https://7f000001.nip.io/", "private_name"),
        ("https://10-0-0-1.sslip.io/", "private_name"),
        ("https://metadata.google.internal/", "metadata_address"),
        ("https://METADATA.google.internal./", "metadata_address"),
        ("https://168.63.129.16/", "metadata_address"),
        ("https://[::ffff:169.254.169.254]/", "metadata_address"),
        ("https://[64:ff9b::a9fe:a9fe]/", "metadata_address"),
        ("https://[2002:7f00:1::]/", "private_address"),
        ("https://[2001:0:7f00:1::]/", "private_address"),
        ("https://[2001:db8::5efe:10.0.0.1]/", "private_address"),
        ("https://example.org/?u=http://169.254.169.254/latest", "metadata_address"),
    ],
)
def test_what_nobody_should_follow_is_denied(text: str, code: str) -> None:
    found = urls.evaluate_url(text)
    assert (found.suggestion, found.floor) == (Decision.DENY, Decision.DENY)
    assert code in codes(text)


@pytest.mark.parametrize(
    ("text", "url", "place"),
    [
        ("HTTP://ExAmple.org:80", "http://example.org/", "example.org"),
        (
            "https://b\u00fccher.example/\u00fc?\u00fc",
            "https://xn--bcher-kva.example/%C3%BC?%C3%BC",
            "xn--bcher-kva.example",
        ),
        (
            "https://[2606:4700::0:1111]:8443/%41?a=%26",
            "https://[2606:4700::1111]:8443/%41?a=%26",
            "[2606:4700::1111]:8443",
        ),
        ("https://u:p@example.org?x", "https://u:p@example.org/?x", "example.org"),
    ],
)
def test_an_address_is_shown_as_it_will_be_asked_for(text: str, url: str, place: str) -> None:
    found = urls.evaluate_url(text)
    assert (found.url, found.place) == (url, place)
    assert urls.evaluate_url(url).url == url


@pytest.mark.parametrize(
    "text", ["http://printer.lan/", "http://nas.home.lan/", "http://192.168.1.7/", "http://10.1.2.3/"]
)
def test_private_hosts_that_a_person_allowed_raise_no_objection(text: str) -> None:
    allowed = ("printer.lan", "*.home.lan", "192.168.1.7", "10.0.0.0/8")
    assert urls.evaluate_url(text, allow_private=allowed).suggestion is Decision.ALLOW
    assert urls.evaluate_url(text).suggestion is Decision.DENY


def test_a_network_that_is_allowed_opens_no_metadata_service() -> None:
    metadata = "http://169.254.169.254/"
    assert urls.evaluate_url(metadata, allow_private=("169.254.0.0/16",)).suggestion is Decision.DENY
    assert urls.evaluate_url(metadata, allow_private=("169.254.169.254",)).suggestion is Decision.ALLOW


@pytest.mark.parametrize(
    ("text", "host"), [("localhost:3000/x", "localhost"), ("127.1", "127.0.0.1"), ("example.org/x", "example.org")]
)
def test_a_scheme_may_be_given_for_texts_without_one(text: str, host: str) -> None:
    assert urls.evaluate_url(text, scheme="http").host == host


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("https://EXAMPLE.org./x", "example.org"),
        ("ssh://git@example.org:2222/x", "example.org:2222"),
        ("git@example.org:me/it.git", "example.org"),
        ("example.org::module/x", "example.org"),
        ("me@example.org:8080", "example.org:8080"),
        ("ftp://bücher.example/x", "xn--bcher-kva.example"),
        ("2606:4700::1", "[2606:4700::1]"),
        ("git@[2606:4700::1]:x", "[2606:4700::1]"),
        pytest.param("https://example.org\\@b.example/", "", id="a-backslash"),
        pytest.param("a:b@example.org", "", id="scp-and-curl-disagree"),
        pytest.param("{a,b}.example", "", id="several"),
        pytest.param("./example.org", "", id="a-file"),
    ],
)
def test_where_an_address_leads_is_told_or_left_open(text: str, place: str) -> None:
    assert urls.find_url_place(text) == place


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "0177.1", "localhost", "db"])
def test_a_bare_host_is_judged_too(host: str) -> None:
    assert urls.evaluate_host(host).suggestion is Decision.DENY
    assert urls.evaluate_host("example.org").suggestion is Decision.ALLOW


def test_endings_are_compared_by_whole_labels_from_the_right() -> None:
    assert hostnames.is_same_or_subdomain("a.example.org", "example.org")
    assert not hostnames.is_same_or_subdomain("badexample.org", "example.org")
    assert not hostnames.is_same_or_subdomain("example.org.evil.example", "example.org")


NETWORKS = "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 100.64.0.0/10 0.0.0.0/8 224.0.0.0/3"
PRIVATE = st.sampled_from([IPv4Network(text) for text in re.split(" ", NETWORKS)]).flatmap(
    lambda network: st.integers(int(network[0]), int(network[-1])).map(IPv4Address)
)
BASES = st.sampled_from(["{:d}", "0{:o}", "0x{:x}", "0X{:X}", "000{:o}", "0x000{:x}"])
DOTS = st.sampled_from([".", "\u3002", "\uff0e", "\uff61"])
FORMS = ("::ffff:{}", "::{}", "64:ff9b::{}", "::ffff:0:{}", "2606:4700::5efe:{}", "fe80::200:5efe:{}")


@st.composite
def written(draw: st.DrawFn) -> str:
    """A private IPv4 address in any of the forms that some program reads as one."""
    address = draw(PRIVATE)
    if draw(st.booleans()):
        return f"[{draw(st.sampled_from(FORMS)).format(address)}]"
    count = draw(st.integers(1, 4))
    number = int(address)
    parts = [number >> 8 * (3 - at) & 255 for at in range(count - 1)] + [number & (1 << 8 * (5 - count)) - 1]
    dot = draw(DOTS)
    text = dot.join(draw(BASES).format(part) for part in parts) + draw(st.sampled_from(["", "."]))
    if draw(st.booleans()):
        text = text.translate({ord("0") + digit: 0xFF10 + digit for digit in range(10)})
    return text


@given(written(), st.sampled_from(["", ":80", ":8080"]), st.sampled_from(["", "user@", "example.org:80@"]))
def test_no_form_of_a_private_address_is_anything_but_denied(host: str, port: str, user: str) -> None:
    for text in (f"http://{user}{host}{port}/", f"HTTPS://{user}{host}{port}", f"http://{user}{host}{port}?a#b"):
        assert urls.evaluate_url(text).suggestion is Decision.DENY


@given(PRIVATE, st.integers(0, 2**64 - 1))
def test_no_ipv6_address_that_carries_a_private_one_is_allowed(address: IPv4Address, rest: int) -> None:
    number = int(address)
    for carrying in (0x2002 << 112 | number << 80 | rest, 0x2001 << 112 | number << 64 | rest, 0x64FF9B << 96 | number):
        assert urls.evaluate_host(str(IPv6Address(carrying))).suggestion is Decision.DENY


@given(st.text(max_size=60))
def test_every_text_has_a_view_that_stays_when_it_is_read_again(text: str) -> None:
    for address in (text, f"https://{text}", f"https://example.org/{text}"):
        found = urls.evaluate_url(address)
        if found.url:
            again = urls.evaluate_url(found.url)
            assert (again.url, again.host, again.port) == (found.url, found.host, found.port)
