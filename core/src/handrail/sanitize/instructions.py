"""Passages of third-party text that address a model in place of its user, each marked.

They are recognized by what such passages do, in English: override the model's instructions, address it as what it is,
assign it another role, ask it to keep things from its user or to give away what is theirs, or forge a turn. A match is
not proof, and the absence of one does not clear the text.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["mark_instructions"]

OPENING_MARK, CLOSING_MARK = "⟦to a model: ", "⟧"
# So much of a text is looked at, and so far a passage reaches to the ends of its sentence.
MAX_SEARCHED_CHARS = 200_000
SENTENCE_REACH = 300

_SHORT_GAP = r"[^.!?\n]{0,60}?"
_FEW_WORDS = r"(?:[\w,'/-]{1,20}\s){0,4}?"
_INSTRUCTION_WORDS = (
    r"(?:instructions?|prompts?|guidelines?|directives?|programming|training|constraints|restrictions|safeguards|rules|"
    r"messages?|orders|tasks?|context)"
)
_PRIOR_WORDS = (
    r"(?:all|any|every|previous|prior|preceding|earlier|above|former|foregoing|existing|original|initial|your|system|"
    r"developer|safety|everything)"
)
_MODEL_WORDS = r"(?:(?:a\.?i\.?|llm|digital|virtual|coding|language)[ -](?:assistants?|agents?|models?|systems?|bots?)|llms?|large language models?)"
_MACHINE_WORDS = rf"(?:a\.?i\.?|{_MODEL_WORDS}|chat ?bots?|assistants?)"
_SENTENCE_START = r"(?:^|(?<=[.!?>*_#(\[-]))\s{0,3}"
_GREETING_WORDS = r"(?:dear|attention|hey|hello|hi|note to|notice to|message to|important for|instructions? for)[,:]? (?:the |all |any )?"
_PERSON_WORDS = r"(?:the |your |any )?(?:users?|humans?|persons?|owner|operator|developers?|people)"
_SECRET_WORDS = (
    r"(?:system prompt|credentials?|api[ _-]?keys?|passwords?|(?:access |session |auth )?tokens?|secrets?|private keys?|"
    r"ssh keys?|environment variables|(?:chat|conversation) (?:history|log)|cookies)"
)
_PASSAGE_PATTERNS = (
    # They set aside what it was told.
    (
        rf"\b(?:ignore|disregard|forget|override|bypass|neglect|discard|(?:do not|don't|stop) (?:follow|"
        rf"obey)(?:ing)?)\s{_FEW_WORDS}{_PRIOR_WORDS}\s(?:[\w'/-]{{1,20}}\s)?(?:{_INSTRUCTION_WORDS}|above|before|told)\b"
    ),
    (
        r"\b(?:ignore|disregard|forget) (?:what|everything|anything|all)(?:\s[\w']{1,20}){0,4}?\s(?:told|before|above|said|"
        r"instructed|learned|learnt)\b"
    ),
    (
        r"\b(?:new|updated|real|actual|revised|hidden|secret) (?:system )?(?:instructions?|prompt|directives?|"
        r"orders)\b\s{0,3}(?::|for you\b|to follow\b)"
    ),
    r"\byour (?:new|real|true|only|actual) (?:task|role|goal|job|instructions?|objective|purpose|mission)\b",
    # They speak to it by what it is.
    rf"{_SENTENCE_START}{_GREETING_WORDS}{_MACHINE_WORDS}[*_]{{0,3}}\s{{0,3}}[:,.!-]",
    rf"{_SENTENCE_START}(?:the |all |any )?{_MODEL_WORDS}\s{{0,3}}:",
    (
        rf"{_SENTENCE_START}(?:{_GREETING_WORDS})?(?:the |all |any )?{_MACHINE_WORDS}(?:,? (?:reading|processing|summari[sz]ing|browsing|"
        rf"parsing) (?:this|the)\b|,? (?:you )?(?:must|shall|should|please|are (?:required|instructed)|need to|have to)\b)"
    ),
    rf"\bif you(?: are|'re) (?:an? |the )?{_MACHINE_WORDS}\b",
    rf"\b(?:any|all|every) {_MACHINE_WORDS} (?:that |which |who )?(?:reads?|reading|process(?:es|ing)|must|shall|should)\b",
    # They give it another part to play.
    (
        rf"\b(?:you are now|from now on,? you(?: are| will| must|'re)|pretend (?:to be|you are)|act as)\b{_SHORT_GAP}\b(?:{_MACHINE_WORDS}|"
        rf"mode|persona|unrestricted|jailbr[eo]ken?|without (?:any )?(?:restrictions|limits|filters))\b"
    ),
    # They have it keep things from its person.
    rf"\b(?:do not|don't|never|without|avoid)\s(?:tell|inform|notify|alert|warn|ask|consult)(?:ing)?\s{_PERSON_WORDS}\b",
    rf"\b(?:do not|don't|never|without|avoid)\s(?:mention|reveal|report|show|disclos|say)(?:e|ing)?\b{_SHORT_GAP}\bto {_PERSON_WORDS}\b",
    # They have it give away what is its person's, or what it was told.
    (
        rf"\b(?:send|post|forward|upload|e-?mail|exfiltrate|leak|append|include|put|paste|submit|transmit|reveal|print|repeat|"
        rf"output)\b{_SHORT_GAP}\b(?:your|the user'?s?|their|the system|the contents? of)\b{_SHORT_GAP}\b{_SECRET_WORDS}\b"
    ),
    rf"\b(?:read|cat|open|print|fetch|send|upload)\b{_SHORT_GAP}(?:~/\.|/etc/shadow|\bid_rsa\b|\.env\b|\.ssh\b|\.aws\b){_SHORT_GAP}\b(?:and|then|to)\b",
    # They forge a turn.
    r"^[\s>*_`#\[-]{0,6}(?:system(?: prompt| message| override)?|developer)\]?\s{0,2}:",
    (
        r"^[\s>*_`#-]{0,6}(?:user|human|operator|admin(?:istrator)?)\s{0,2}:\s{0,3}(?:\w+[,.]? ){0,4}?(?:approved?|"
        r"confirm(?:ed)?|authori[sz]ed?|permission|go ahead|proceed)\b"
    ),
)
# They end the data, or begin a turn, in a model's own signs.
_CHAT_MARKERS = r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|tool_(?:result|output|response)|function_results?|untrusted)\b[^>\n]{0,80}>"
# None of them begins within a word.
_MODEL_ADDRESS = re.compile(
    rf"{_CHAT_MARKERS}|(?<![^\W_])(?:{'|'.join(_PASSAGE_PATTERNS)})", re.IGNORECASE | re.MULTILINE
)
# A sentence ends here; so does a cell of a table.
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\n|]")


def mark_instructions(text: str) -> tuple[str, int]:
    """Return the text with each passage that addresses a model between `⟦to a model: ` and `⟧`, and their number.

    Nothing is removed.
    """
    passages = _find_passages(text[:MAX_SEARCHED_CHARS])
    pieces: list[str] = []
    last = 0
    for begin, end in passages:
        pieces += [text[last:begin], OPENING_MARK, text[begin:end], CLOSING_MARK]
        last = end
    return "".join([*pieces, text[last:]]), len(passages)


def _find_passages(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences that address a model; adjacent spans are merged."""
    seen, places = _normalize_for_model(text)
    met: list[tuple[int, int]] = []
    for match in _MODEL_ADDRESS.finditer(seen):
        begin, end = _find_sentence(seen, match)
        if met and begin <= met[-1][1]:
            met[-1] = met[-1][0], max(met[-1][1], end)
        else:
            met.append((begin, end))
    return [(places[begin], places[end - 1] + 1) for begin, end in met]


def _find_sentence(text: str, match: re.Match[str]) -> tuple[int, int]:
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    before = max(0, start - SENTENCE_REACH)
    begin = max((found.end() for found in _SENTENCE_END.finditer(text, before, start)), default=before)
    begin += len(text[begin:start]) - len(text[begin:start].lstrip())
    after = _SENTENCE_END.search(text, match.end(), match.end() + SENTENCE_REACH)
    end = after.start() + (after[0] in ".!?") if after else min(len(text), match.end() + SENTENCE_REACH)
    return begin, max(end, match.end())


def _normalize_for_model(text: str) -> tuple[str, range | list[int]]:
    """Return the text as a model reads it, and the original position of each character.

    Invisible characters are removed, and wide and styled letters replaced by plain ones.
    """
    if text.isascii():
        return text, range(len(text))
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        plain = letter if letter.isascii() else unicodedata.normalize("NFKC", letter)
        if letter == "’":
            plain = "'"
        if len(plain) != 1:
            plain = letter
        if unicodedata.category(plain) not in ("Cf", "Mn"):
            letters.append(plain)
            places.append(place)
    return "".join(letters), places
