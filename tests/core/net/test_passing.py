"""What may be over the next time is asked again, as often and as late as it says."""

from __future__ import annotations

import pytest

from handrail.net.retry import TransientError, format_retry_hint, parse_retry_after, retry_transient


class Server:
    """Fails so many times, each time asking for a wait of so many seconds."""

    def __init__(self, failures: int, *, wait: float = 0) -> None:
        self.failures = failures
        self.wait = wait
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        if self.asked <= self.failures:
            raise TransientError(OSError(f"busy {self.asked}"), self.wait)
        return "done"


async def test_what_passes_is_asked_again():
    server = Server(2)
    assert (await retry_transient(server, tries=3), server.asked) == ("done", 3)


async def test_the_last_failure_is_told():
    server = Server(9)
    with pytest.raises(OSError, match="busy 3"):
        await retry_transient(server, tries=3)
    assert server.asked == 3


async def test_nobody_waits_for_long():
    server = Server(1, wait=3600)
    with pytest.raises(OSError, match="busy 1"):
        await retry_transient(server)
    assert server.asked == 1


@pytest.mark.parametrize(
    ("told", "wait", "hint"),
    [
        pytest.param("17", 17, "try again in 17 s", id="seconds"),
        pytest.param("9" * 30, 86_400, "try again in 86400 s", id="too-many"),
        pytest.param("Sun, 06 Nov 1994 08:49:37 GMT", None, "try again later", id="a-date"),
        pytest.param("²", None, "try again later", id="no-number"),
        pytest.param("", None, "try again later", id="nothing"),
    ],
)
def test_when_the_server_wants_to_be_asked_again(told: str, wait: int | None, hint: str):
    headers = {"retry-after": told}
    assert (parse_retry_after(headers), format_retry_hint(headers)) == (wait, hint)
