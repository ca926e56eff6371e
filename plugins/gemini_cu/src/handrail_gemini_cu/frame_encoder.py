"""Pictures as they are sent: no larger than the model looks at, as PNG. Blocking; some milliseconds."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from handrail import Frame, Size
from handrail.api.coordinates import fit_size

# Quick rather than small: what is flat, as screens are, is small anyhow.
COMPRESSION = 1


def compute_sent_size(frame: Frame, longest: int) -> Size:
    """Return the size in which the frame is sent."""
    height, width = frame.pixels.shape[:2]
    return fit_size(Size(width, height), longest=longest)


def encode_png(frame: Frame, longest: int) -> bytes:
    """Encode the frame as the PNG that is sent."""
    size = compute_sent_size(frame, longest)
    picture = Image.fromarray(np.ascontiguousarray(frame.pixels[..., ::-1]))
    if picture.size != (size.width, size.height):
        picture = picture.resize((size.width, size.height), Image.Resampling.BOX)
    written = BytesIO()
    picture.save(written, "PNG", compress_level=COMPRESSION)
    return written.getvalue()
