"""Head, tail and the whole of what a command wrote."""

from __future__ import annotations

import io
from itertools import pairwise

from hypothesis import given, strategies as st

from handrail_cli.process.output_capture import SHOWN_BYTES, HeadTailBuffer


class Kept(io.BytesIO):
    """A sink that can be read after it was closed."""

    whole = b""

    def close(self) -> None:
        self.whole = self.getvalue()
        super().close()

    def wire(self) -> dict[str, object]:
        return {}


@given(st.lists(st.binary(max_size=300), max_size=6), st.integers(1, 2_000))
def test_the_whole_is_kept_when_it_is_too_long_and_only_then(parts: list[bytes], times: int) -> None:
    sinks: list[Kept] = []

    def open_sink() -> Kept:
        sinks.append(Kept())
        return sinks[-1]

    output = HeadTailBuffer(open_sink)
    for part in parts:
        output.feed(part * times)
    output.close()
    whole = b"".join(part * times for part in parts)
    shown = output.shown()
    assert output.total == len(whole)
    assert shown.truncated == (len(whole) > SHOWN_BYTES)
    assert [sink.whole for sink in sinks] == ([whole] if len(whole) > SHOWN_BYTES else [])
    if not shown.truncated and not shown.binary:
        assert shown.text == whole.decode(shown.charset, "replace").replace("\0", "\n")


@given(st.text(min_size=1, max_size=8).filter(lambda text: "\ufffd" not in text), st.integers(0, 3))
def test_a_cut_never_goes_through_a_letter(word: str, shift: int) -> None:
    try:
        data = b"x" * shift + word.encode() * (200_000 // len(word.encode()))
    except UnicodeEncodeError:
        return
    output = HeadTailBuffer()
    output.feed(data)
    assert "\ufffd" not in output.shown().text


@given(st.text(alphabet="aéł€日😀", max_size=12), st.lists(st.integers(0, 40), max_size=6))
def test_taking_never_goes_through_a_letter(text: str, places: list[int]) -> None:
    data = text.encode()
    cuts = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    output, taken = HeadTailBuffer(), ""
    for start, end in pairwise(cuts):
        output.feed(data[start:end])
        taken += output.take().text
    assert taken == text


def test_what_begins_a_letter_is_shown_when_no_more_will_come() -> None:
    output = HeadTailBuffer()
    output.feed(b"caf\xc3")
    assert output.take().text == "caf"
    assert output.take(last=True).text != ""


def test_taking_forgets_what_was_taken() -> None:
    output = HeadTailBuffer()
    output.feed(b"one")
    assert output.take().text == "one"
    output.feed(b"two")
    assert output.take().text == "two"


def test_what_comes_after_the_sink_was_closed_is_still_kept() -> None:
    output = HeadTailBuffer(Kept)
    output.feed(b"x" * 200_000)
    output.close()
    output.take()
    output.feed(b"y" * 600_000 + b"end")
    assert output.shown().text.endswith("end")
