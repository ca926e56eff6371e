"""Programs that look into tables and documents of JSON, YAML and XML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role

MLR_FORMATS = r"csv|tsv|json|jsonl|nidx|xtab|pprint|dkvp|markdown|md|usv|asv|csvlite|tsvlite|yaml"
MLR_PLAIN = re.compile(
    rf"--[iop]?({MLR_FORMATS})|--[ctjldnxpy]2[ctjldnxpbmy]|-[nNSAOCMpTjct]|--(implicit-(csv|tsv|pprint)-header|headerless-(csv|tsv|pprint)-output|hi|ho|right|barred"
    r"|barred-input|barred-output|xvright|key-color|no-color|always-color|jvstack|no-jvstack|jlistwrap|no-jlistwrap|no-auto-flatten|no-auto-unflatten|allow-ragged-csv-input"
    r"|ragged|quote-all|quote-original|lazy-quotes|repifs|infer-none|infer-octal|infer-int-as-float|skip-comments|pass-comments|gzin|bz2in|zin|zstdin|ofmt|no-fflush|fflush|no-dedupe-field-names)"
)
MLR_VALUED = re.compile(
    r"--([io]?[fpr]s|[io]fs-regex|ips-regex|ofmt|nr-progress-mod|records-per-batch|seed|tz|flatsep|jflatsep|io|skip-comments-with|pass-comments-with)|-[io]"
)
# Each verb with its options (those with a value end with a colon) and the words that it takes besides.
MLR_VERBS: Mapping[str, Sequence[str]] = {
    verb: rest
    for verb, *rest in map(
        str.split,
        """
        altkv
        bar -f: --lo: --hi: -w: --auto
        bootstrap -n:
        cat -n -N: -g: --filename --filenum
        count -d -n -o: -g:
        count-distinct -f: -n -u -o:
        count-similar -g: -o:
        cut -o -f: -x -r --complement
        decimate -n: -b -e -g:
        fill-down -a -f: --all --only-if-blank --only-if-any-blank
        fill-empty -v: -S -U --only-if-blank
        filter -q -S -F -x SCRIPT
        flatten -f: -s:
        format-values -n -i: -f: -s:
        fraction -f: -g: -p -c
        gap -n: -g:
        grep -i -v -a PATTERN
        group-by FIELDS
        group-like
        having-fields --at-least: --which-are: --at-most: --all-defined: --any-defined: --all-matching: --any-matching:
        head -n: -g:
        histogram -f: --lo: --hi: --nbins: --auto -o:
        join --np --ul --ur -u -s -f: -i: -j: -l: -r: --lp: --rp: --lk --rk
        json-parse -f: -k
        json-stringify -f: --jvstack --no-jvstack
        label NAMES
        latin1-to-utf8
        least-frequent -f: -b -o: -n:
        merge-fields -a: -f: -r: -c: -o: -k -i
        most-frequent -f: -b -o: -n:
        nest --explode --implode --values --pairs --across-records --across-fields -f: --nested-fs: --nested-ps: --evar: --ivar:
        nothing
        put -q -S -F -x SCRIPT
        regularize
        remove-empty-columns
        rename -r -g NAMES
        reorder -f: -e
        repeat -n: -f:
        reshape -i: -r: -o: -s:
        sample -k: -g:
        sec2gmt -1 -2 -3 -4 -5 -6 -7 -8 -9 --millis --micros --nanos FIELDS
        sec2gmtdate FIELDS
        seqgen -f: --start: --stop: --step:
        shuffle
        skip-trivial-records
        sort -f: -r: -nf: -nr: -c: -cr: -t: -tr: -n:
        sort-within-records -r
        sparsify -s: -f:
        stats1 -a: -f: -g: --fr: --gr: --fx: --gx: -i -s -F
        stats2 -a: -f: -g: --fit
        step -a: -f: -g: -d: -o:
        summary -a: -x: --transpose
        tac
        tail -n: -g:
        top -f: -g: -n: -a -o: --max --min -F
        unflatten -f: -s:
        uniq -g: -x: -c -n -o: -a -d -u
        unspace -f: -k -v
        unsparsify --fill-with: -f:
        utf8-to-latin1
        """.strip().splitlines(),
    )
}
# Paths into a document, which `fx` does not take for JavaScript.
FX_PATH = re.compile(r"[\w./~*\[\]\"-]+|\?")


def take_mlr(taking: ArgumentMatch, start: int) -> None:
    """Take `mlr [FLAGS] VERB [OPTIONS] [then VERB …] [FILE…]`."""
    words = taking.words
    at, in_place = _take_mlr_flags(taking, start)
    while taking.unknown is None and at < len(words):
        at = _take_mlr_verb(taking, at)
        if at >= len(words) or words[at].text != "then":
            break
        at += 1
    for n in range(at, len(words)):
        note_role(taking, "write" if in_place else "read", n)


def _take_mlr_flags(taking: ArgumentMatch, at: int) -> tuple[int, bool]:
    """Take the flags; returns where the verb stands, and whether files are changed in place."""
    words = taking.words
    in_place = False
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        if text == "--from" and at + 1 < len(words):
            at += 1
            note_role(taking, "read", at)
        elif text.startswith("--prepipe"):
            taking.worsen("dangerous", code="runs_program", why=f"{text} of mlr runs a program", at=at)
            at += 1
        elif MLR_VALUED.fullmatch(text):
            at += 1
        elif text != "-I" and not MLR_PLAIN.fullmatch(text):
            taking.unread(at)
        in_place = in_place or text == "-I"
        at += 1
    return at, in_place


def _take_mlr_verb(taking: ArgumentMatch, at: int) -> int:
    """Take a verb with its options and words; returns where it ends."""
    words = taking.words
    verb = words[at].text or "?"
    listed = MLR_VERBS.get(verb)
    if listed is None:
        taking.unread(at)
        return at + 1
    at += 1
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-") and text != "-":
        if f"{text}:" in listed and at + 1 < len(words):
            at += 1
            if verb == "join" and text == "-f":
                note_role(taking, "read", at)
        elif text not in listed:
            taking.unread(at)
        at += 1
    for besides in (word for word in listed if not word.startswith("-")):
        if at >= len(words):
            taking.unread(len(words) - 1)
        elif besides == "SCRIPT":
            note_role(taking, "code/miller", at)
        at += 1
    return at


def check_script_or_file(taking: ArgumentMatch) -> None:
    """Check a single operand: it is a script, unless a file of that name exists."""
    operands = [one.start for one in taking.inner if one.language in ("yq", "jq")]
    if len(operands) == 1 and not any(one.role in ("read", "write") for one in taking.named):
        _note_possible_file(taking, operands[0])


def _note_possible_file(taking: ArgumentMatch, at: int) -> None:
    text = taking.words[at].text
    if text is not None and re.fullmatch(r"\.*", text) is None:
        note_role(taking, "read" if "/" in text else "revision", at)


def check_fx_script(taking: ArgumentMatch) -> None:
    """Check the operands of `fx`: a file, and paths into it; anything else is JavaScript."""
    for at in taking.operands:
        if FX_PATH.fullmatch(taking.words[at].text or " "):
            _note_possible_file(taking, at)
        else:
            taking.unread(at)


def check_response_files(taking: ArgumentMatch) -> None:
    """Check for `@FILE` anywhere in the command line, which holds more options and names.

    The arguments are combined before options are recognized.
    """
    for at in range(1, len(taking.words)):
        if (taking.words[at].text or "@").startswith("@"):
            taking.unread(at)
