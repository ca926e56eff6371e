"""Content that a server packed for the way, unpacked piece by piece to its true end (RFC 9110, 8.4.1)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping

# Of what a few packed bytes may become, so much at a time.
OUTPUT_PIECE_BYTES = 1_048_576
GZIP_WBITS = zlib.MAX_WBITS | 16
RAW_WBITS = -zlib.MAX_WBITS


class EncodingError(ValueError):
    """Error for content that is not encoded as declared; `early` if it only ends too soon."""

    def __init__(self, message: str, *, early: bool = False) -> None:
        super().__init__(message)
        self.early = early


class _IdentityDecoder:
    def take(self, data: bytes) -> Iterator[bytes]:
        yield data

    def end(self) -> None:
        """Accept any end of the data."""


class _ZlibDecoder:
    """Content by zlib, in one stream or several one after another, as gzip allows."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._stream = zlib.decompressobj(bits)
        self._begun = False

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded content of these bytes."""
        full = False
        # Bytes that were all read may have given more than one piece holds.
        while data or full:
            if self._stream.eof:
                self._stream, self._begun = zlib.decompressobj(self._bits), False
            try:
                piece = self._stream.decompress(data, OUTPUT_PIECE_BYTES)
            except zlib.error as exc:
                if self._begun or self._bits != zlib.MAX_WBITS:
                    raise EncodingError(str(exc)) from exc
                # Many servers call it deflate without the head that belongs to it.
                self._bits = RAW_WBITS
                self._stream = zlib.decompressobj(RAW_WBITS)
                continue
            self._begun = True
            data = self._stream.unconsumed_tail or self._stream.unused_data
            full = len(piece) == OUTPUT_PIECE_BYTES and not self._stream.eof
            if piece:
                yield piece

    def end(self) -> None:
        """`EncodingError` when it ends before what is packed does."""
        if self._begun and not self._stream.eof:
            raise EncodingError("the end of what is packed is missing", early=True)


DECODER_FACTORIES: Mapping[str, Callable[[], _IdentityDecoder | _ZlibDecoder]] = {
    "": _IdentityDecoder,
    "identity": _IdentityDecoder,
    "gzip": lambda: _ZlibDecoder(GZIP_WBITS),
    "x-gzip": lambda: _ZlibDecoder(GZIP_WBITS),
    "deflate": lambda: _ZlibDecoder(zlib.MAX_WBITS),
}


def create_decoder(encoding: str) -> _IdentityDecoder | _ZlibDecoder:
    """Return a decoder for content with this `Content-Encoding`.

    Raises `EncodingError` for an encoding that is not supported.
    """
    ways = [each.strip().lower() for each in encoding.split(",") if each.strip()]
    if len(ways) > 1:
        # Each time, a thousandfold: one piece could fill the memory before it is counted.
        raise EncodingError(f"it is packed {len(ways)} times")
    way = "".join(ways)
    if way not in DECODER_FACTORIES:
        raise EncodingError(f"it is packed by {way[:40]!r}, which was not asked for")
    return DECODER_FACTORIES[way]()
