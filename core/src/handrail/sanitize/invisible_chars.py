"""Invisible characters, and those that change how others are displayed.

They are kept where a language or an emoji requires them, else removed or escaped. Legitimate uses are those of Unicode
(UTS #51 for emoji sequences, UTS #37 for ideographic variants, the core specification chapter 23 for joiners,
directional marks and fillers).
"""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["remove_invisible"]

_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TURNING = "\u202a-\u202e\u2066-\u2069"
_MARKS_OF_DIRECTION = "\u061c\u200e\u200f"
_ZERO_WIDTH = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_BREAKS = "\u2028\u2029"
_UNSEEN = _TAGS + _SELECTORS + _TURNING + _MARKS_OF_DIRECTION + _ZERO_WIDTH
_PRIVATE = "\ue000-\uf8ff"
_FAR_PRIVATE = "\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_NO_CHARACTERS = "\ufdd0-\ufdef" + "".join(
    chr(plane * 0x10000 + last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)

# Letters that a joiner may follow, because it changes their form.
_JOINING = (
    "\u0600-\u061b\u061d-\u07ff\u0840-\u085f\u0860-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa"
    "\u1b00-\u1bff\ua840-\ua87f\ua980-\ua9df\uaa60-\uaa7f\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
    "\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
# Scripts that write no blanks between words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1950-\u19ff\uaa60-\uaadf"
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u05ff\u0620-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e900-\U0001eeff]"
)
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Signs that have a standardized variant of their own.
_VARIED = (
    "0\u2200-\u22ff\u2a00-\u2aff\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f\u1000-\u109f\uaa60-\uaa7f\ua856-\ua86f"
)
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff"
)
_TONES = "\U0001f3fb-\U0001f3ff"


def _encode_tags(letters: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in letters)


_ALONE = f"(?![{_UNSEEN}])"
_ONE_EMOJI = f"[{_EMOJI}][{_TONES}]?[\ufe0e\ufe0f]?"
# The only flags of regions that are recommended for interchange: England, Scotland, Wales.
_REGIONS = "|".join(map(_encode_tags, ("eng", "sct", "wls")))

# Letters and signs of most texts: none of them is unsure, steers a terminal, or is a mark that is stacked.
_ORDINARY = (
    "\t\n\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u058f\u2010-\u2027\u2030-\u205f\u20a0-\u20cf\u2100-\u2fff"
    "\u3000-\u3163\u3165-\ua4cf\uac00-\ud7a3\uff01-\uff9f"
)
RARE_CHARS = re.compile(f"[^{_ORDINARY}]")
# The others that have one byte.
ORDINARY_BYTES = bytes(byte for byte in range(0x80) if RARE_CHARS.search(chr(byte)) is None)
_UNSURE = re.compile(f"[{_UNSEEN}{_BREAKS}{_PRIVATE}{_FAR_PRIVATE}{_NO_CHARACTERS}\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_LETTERS = re.compile(
    f"""(?P<honest>
        \U0001f3f4{_encode_tags("gb")}(?:{_REGIONS})\U000e007f
      | {_ONE_EMOJI}(?:\u200d{_ONE_EMOJI})*
      | [0-9\\#*]\ufe0f
      | (?<=[{_JOINING}])[\u200c\u200d]{_ALONE}
      | (?<=[{_UNSPACED}])\u200b{_ALONE}
      | (?<=[{_IDEOGRAPHS}])[\ufe00-\ufe02\U000e0100-\U000e012f]{_ALONE}
      | (?<=[{_VARIED}])[\ufe00\ufe01]{_ALONE}
      | (?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]{_ALONE}
      | \u115f(?=[\u1161-\u11a7\ud7b0-\ud7c6])
      | (?<=[\u1100-\u115e\ua960-\ua97c])\u1160(?=[\u11a8-\u11ff\ud7cb-\ud7fb])
    )
  | (?P<direction>(?<![{_UNSEEN}])[{_MARKS_OF_DIRECTION}]{_ALONE})
  | (?P<turning>[{_TURNING}])
  | (?P<bidi>[{_MARKS_OF_DIRECTION}])
  | (?P<tags>[{_TAGS}]+)
  | (?P<variation_selectors>[{_SELECTORS}]+)
  | (?P<zero_width>[{_ZERO_WIDTH}]+)
  | (?P<breaks>[{_BREAKS}])
  | (?P<private>[{_FAR_PRIVATE}]+)
  | (?P<no_character>[{_NO_CHARACTERS}])
    """,
    re.VERBOSE,
)
# A few private characters are icons of a font; a row of them may be a message. What stood between them and is not seen is gone by then.
_PRIVATE_ROW = re.compile(f"[{_PRIVATE}]{{4,}}")
# Of private characters in a row, so many are written out.
_WRITTEN_OUT = 8

# Marks above and below a letter. A run of one kind is cut to what languages write at most, so that it stays on its own line.
_LATIN_MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_ARABIC_MARKS = "\u064b-\u065f\u06d6-\u06dc"
_THAI_MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
# One of the marks, and a run of more than there may be.
_STACKS = tuple(
    (re.compile(f"[{marks}]"), re.compile(f"([{marks}]{{{most}}})[{marks}]+"))
    for marks, most in ((_LATIN_MARKS, 6), (_ARABIC_MARKS, 6), (_THAI_MARKS, 3))
)


def remove_invisible(text: str, removed: Counter[str]) -> str:
    """Return the text without invisible characters, and count them in `removed`.

    The counts are bidi, zero_width, tags, variation_selectors, private_use, invalid_utf8, control and combining.
    Characters that change the text direction and private-use ones are written as `⟦U+202E⟧`; invalid characters become
    U+FFFD.
    """
    # A long text has few different characters, and to look at these takes a fraction of the time.
    characters = "".join(set(text))
    if _UNSURE.search(characters) is not None:
        text = _SURROGATES.sub(lambda match: _join_surrogates(match, removed), text)
        directed = _RIGHT_TO_LEFT.search(text) is not None
        text = _LETTERS.sub(lambda match: _replace_invisible(match, removed, directed=directed), text)
        text = _PRIVATE_ROW.sub(lambda match: _format_private_chars(match[0], removed), text)
    for mark, stack in _STACKS:
        if mark.search(characters) is not None:
            text, count = stack.subn(r"\1", text)
            if count:
                removed["combining"] += count
    return text


def format_code_point(letter: str) -> str:
    """Return a character as its code point: `⟦U+202E⟧`."""
    return f"⟦U+{ord(letter):04X}⟧"


def _join_surrogates(match: re.Match[str], removed: Counter[str]) -> str:
    """Return two surrogates as one character; a single one becomes U+FFFD."""
    halves = match[0]
    if len(halves) == 2:
        return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    removed["invalid_utf8"] += 1
    return "\ufffd"


def _replace_invisible(match: re.Match[str], removed: Counter[str], *, directed: bool) -> str:
    found, kind = match[0], match.lastgroup
    match kind:
        case "honest":
            return found
        case "direction" if directed:
            return found
        case "turning":
            removed["bidi"] += 1
            return format_code_point(found)
        case "breaks":
            removed["control"] += 1
            return "\n"
        case "no_character":
            removed["invalid_utf8"] += 1
            return "\ufffd"
        case "private":
            return _format_private_chars(found, removed)
        case _:
            removed["bidi" if kind == "direction" or kind is None else kind] += len(found)
            return ""


def _format_private_chars(found: str, removed: Counter[str]) -> str:
    """Return private characters in a row by their numbers, the first of them."""
    removed["private_use"] += len(found)
    more = len(found) - _WRITTEN_OUT
    return "".join(map(format_code_point, found[:_WRITTEN_OUT])) + (f"⟦… {more} more⟧" if more > 0 else "")
