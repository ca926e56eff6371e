from __future__ import annotations

import zlib

import pytest

from handrail.net.decompression import OUTPUT_PIECE_BYTES, create_decoder


@pytest.mark.parametrize(
    ("encoding", "bits"),
    [
        pytest.param("gzip", zlib.MAX_WBITS | 16, id="gzip"),
        pytest.param("deflate", zlib.MAX_WBITS, id="deflate"),
        pytest.param("deflate", -zlib.MAX_WBITS, id="deflate-without-its-head"),
    ],
)
@pytest.mark.parametrize("more", [-1, 0, 1, 5, 100, 259])
def test_content_that_fills_a_piece_is_unpacked_to_its_end(encoding: str, bits: int, more: int) -> None:
    content = bytes(OUTPUT_PIECE_BYTES + more)
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    unpacked = create_decoder(encoding)
    pieces = list(unpacked.take(packer.compress(content) + packer.flush()))
    unpacked.end()
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= OUTPUT_PIECE_BYTES
