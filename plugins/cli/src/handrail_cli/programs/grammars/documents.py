"""Pictures, sounds, documents and what shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role

CODER = re.compile(
    r"(?i)(@|msl:|mvg:|ephemeral:|text:|label:@|caption:@|https?:|ftp:|url:|epi:|eps:|ps:|pdf:|delegate|video:|x:|inline:|show:|win:|print:|scan:).*|.*[|].*"
)


def check_less(taking: ArgumentMatch) -> None:
    """Check `less`: `+command` acts like keys typed in it."""
    taking.named = [one for one in taking.named if not (taking.words[one.word_index].text or "").startswith("+")]
    for at in taking.operands:
        if (taking.words[at].text or "").startswith("+") and not re.fullmatch(
            r"\+(\d+|F|G|g|/[^!|]*|\?[^!|]*)", taking.words[at].text or ""
        ):
            taking.doubt(at)


def check_man(taking: ArgumentMatch) -> None:
    """Check `man`: a page is a name; a path is a file."""
    for at in taking.operands:
        text = taking.words[at].text
        if text is not None and "/" in text:
            note_role(taking, "read", at)
    if taking.given("-l", "--local-file"):
        for at in taking.operands:
            note_role(taking, "read", at)


def check_exiftool(taking: ArgumentMatch) -> None:
    """Check `exiftool`: without `-TAG=value` it only reads."""
    if taking.unknown is None and not taking.reasons:
        taking.kind = "reads"


def check_magick(taking: ArgumentMatch) -> None:
    """Check `convert IN… OPTIONS OUT`: coders in names may read other files or run programs."""
    words = taking.words
    for at, word in enumerate(words[1:], 1):
        if word.text is None or CODER.fullmatch(word.text):
            taking.worsen(
                "dangerous", code="runs_program", why="names of pictures may run programs or read other files", at=at
            )
    if taking.path == "identify":
        return
    taking.unknown, taking.named = None, []
    if taking.path in ("display", "import", "conjure", "animate", "stream"):
        taking.worsen("dangerous", code="processes", why=f"{taking.path} shows or takes what is on the screen", at=0)
    for at, word in enumerate(words[1:], 1):
        if re.match(r"[-+][a-z]", word.text or "-x") and not PICTURE_OPTIONS.fullmatch((word.text or "")[1:]):
            taking.doubt(at)
    files = [at for at in range(1, len(words)) if re.search(r"\.\w{2,5}$", words[at].text or "")]
    for at in files[:-1]:
        note_role(taking, "write" if taking.path == "mogrify" else "read", at)
    if files:
        note_role(taking, "write", files[-1])


PICTURE_OPTIONS = re.compile(
    r"resize|crop|rotate|quality|strip|thumbnail|geometry|scale|sample|flip|flop|gravity|background|extent|colorspace|density|depth|alpha|trim|border"
    r"|bordercolor|blur|sharpen|negate|normalize|auto-orient|append|delay|loop|coalesce|layers|compress|type|gaussian-blur|monochrome|transparent|fuzz"
    r"|fill|opaque|size|repage|level|brightness-contrast|modulate|gamma|grayscale|interlace|sampling-factor|unsharp|posterize|colors|dither|sepia-tone"
    r"|charcoal|swirl|implode|edge|emboss|median|noise|shadow|compose|composite|flatten|mosaic|rotate|transpose|transverse|verbose|quiet|metric|highlight-color"
)


def check_ffmpeg(taking: ArgumentMatch) -> None:
    """Check `ffmpeg -i IN OPTIONS OUT`: only plain files; filters and protocols may read, send and listen."""
    words = taking.words
    taking.unknown = None
    at = 1
    while at < len(words):
        text = words[at].text
        if text is None or re.search(
            r"(?i)^(https?|ftp|rtmp|tcp|udp|concat|file|pipe|subfile|crypto|data|async|cache|srt|rtp|unix|sftp|smb|gopher):|movie=|^-(filter_script|filter_complex_script|attach|dump_attachment|passlogfile|report|init_hw_device|sdp_file|progress|vstats_file|fpre|vpre|pre|safe|protocol_whitelist)$",
            text,
        ):
            taking.doubt(at)
        elif text == "-i" and at + 1 < len(words):
            note_role(taking, "read", at + 1)
            at += 1
        elif text.startswith("-") and len(text) > 1:
            if re.fullmatch(
                r"-(y|n|an|vn|sn|dn|hide_banner|nostdin|nostats|stats|shortest|copyts|ignore_unknown|version|formats|codecs|encoders|decoders|filters|pix_fmts|protocols|h)",
                text,
            ):
                pass
            elif re.fullmatch(
                r"-(c|codec|b|r|s|f|ss|t|to|vf|af|filter|filter_complex|lavfi|map|map_metadata|metadata|ac|ar|q|crf|preset|tune|profile|level|pix_fmt|aspect|frames|vframes|loop|stream_loop|movflags|threads|loglevel|v|itsoffset|g|bf|vcodec|acodec|scodec|ab|vb|maxrate|bufsize|minrate|vol|framerate|pattern_type|start_number|max_muxing_queue_size|async|vsync|fps_mode|disposition|tag|bsf|fs|sws_flags|compression_level|sample_fmt|channel_layout|hwaccel|segment_time|reset_timestamps|pass|qscale|strict|x264-params|x265-params|color_primaries|color_trc|colorspace)(:[\w:]+)?",
                text,
            ) and at + 1 < len(words):
                at += 1
                if re.search(
                    r"(?i)movie|subtitles|drawtext|textfile|zmq|sendcmd|lut3d|ladspa|lv2|frei0r|fdk|http",
                    words[at].text or "movie",
                ):
                    taking.doubt(at)
            else:
                taking.doubt(at)
        else:
            note_role(taking, "write", at)
        at += 1


def check_ffprobe(taking: ArgumentMatch) -> None:
    """Check `ffprobe`: `concat:…`, `tcp:…` and the like are not files."""
    for one in list(taking.named):
        text = one.value if one.value is not None else taking.words[one.word_index].text
        if re.match(r"\w{2,}:", text or "xx:"):
            taking.doubt(one.word_index)


CONVERTERS_PLAIN = frozenset(("jpegoptim", "optipng", "pngcrush", "pngquant", "cwebp", "dwebp", "gifsicle", "svgo", "jpegtran", "cjpeg", "djpeg",
                              "rsvg-convert", "pdftoppm", "pdftocairo", "pdfimages", "pdfunite", "pdfseparate", "img2pdf", "qpdf", "pandoc",
                              "asciidoctor", "asciidoc", "rst2html", "markdown", "dot", "neato", "fdp", "plantuml", "mmdc", "lame", "oggenc", "flac",
                              "opusenc", "tesseract", "weasyprint"))  # fmt: skip
CONVERTERS_WRITE = frozenset(("-o", "--output", "--outfile", "--out-file", "--dir", "-D", "--destination-dir"))
CONVERTERS_VALUED = re.compile(
    r"-[fFtTwqrslmjJ]|--(from|to|format|read|write|quality|toc-depth|metadata|variable|template-name|width|height|max|size|resize|ext)"
)
CONVERTERS_HARMLESS = re.compile(
    r"-[sSnNvVqkpaO]\d*|-(png|jpeg|jpg|svg|pdf|r|f|l|singlefile|lossless|q|m|T\w+|[fFtq]\w+|K\w+)|--(standalone|toc|number-sections|mathjax|katex|wrap=\w+|quiet|strip-all|overwrite|lossless|progressive|all-progressive|linearize|check|show-npages|pages|empty|reference-links|ascii|atx-headers|section-divs|(from|to|read|write|toc-depth|quality|columns|shift-heading-level-by|markdown-headings|max|dpi|format|width|height|size|metadata|variable)=[\w.+:-]+)"
)


def take_converter(taking: ArgumentMatch, start: int) -> None:
    """Match a converter in its plainest forms, with input and output files; each has options that do more."""
    words = taking.words
    name = taking.path
    if name not in CONVERTERS_PLAIN:
        return
    if len(words) == 2 and re.fullmatch(r"-v|-V|--version|--help|-h", words[1].text or "x"):
        taking.kind = "reads"
        taking.reasons.clear()
        return
    taking.kind = "effect"
    taking.reasons.clear()
    at = start
    files: list[int] = []
    while at < len(words):
        text = words[at].text
        if text is None:
            taking.doubt(at)
        elif text in CONVERTERS_WRITE and at + 1 < len(words):
            at += 1
            note_role(taking, "write", at)
        elif re.match(r"-o[\w./]|--output=|--outfile=", text):
            note_role(taking, "write", at, re.sub(r"^--\w+=|^-o", "", text))
        elif CONVERTERS_VALUED.fullmatch(text) and at + 1 < len(words):
            at += 1
        elif CONVERTERS_HARMLESS.fullmatch(text):
            pass
        elif text.startswith("-") and text != "-":
            taking.doubt(at)
        elif text != "-":
            files.append(at)
        at += 1
    single = name in ("jpegoptim", "optipng", "svgo")
    for number, at in enumerate(files):
        last = number == len(files) - 1 and number > 0 and name not in ("pandoc", "dot", "neato", "fdp")
        note_role(taking, "write" if single or last else "read", at)


def check_calculator(taking: ArgumentMatch) -> None:
    """Check `dc`: `!` runs a command; files given to it, and its standard input, may contain one."""
    for option, at, value in taking.options:
        text = value if value is not None else taking.words[at].text
        if option.name in ("-e", "--expression") and (text is None or "!" in text):
            taking.unread(at)
        elif option.name in ("-f", "--file"):
            taking.worsen("effect")
    if taking.operands:
        taking.worsen("effect")
    elif not taking.options:
        taking.unread(0)


# Words of calculators that work on files, settings, other machines or programs.
ACTING = re.compile(
    r"(?i)\b(save|store|load|export|import|plot|command|set|exrates|clear|mode|convert_file|run|source|system|exec\w*|eval|f?open|f?put\w*|f?get\w*|fprint\w*|read|"
    r"write|include|help|history|rm|cd|pwd|env|getenv|putenv|cmd\w*|popen|freopen|show|custom|config|define|assume)\b"
)
FORMULA = re.compile(r"[\w\s+*/^%().,;:°€$<>=!&|~\[\]{}-]*")


def check_arithmetic(taking: ArgumentMatch) -> None:
    """Check a formula: only numbers, units and computing functions are accepted."""
    for at in taking.operands:
        text = taking.words[at].text
        if text is None or not FORMULA.fullmatch(text) or ACTING.search(text):
            taking.unread(at)
    if not taking.operands:
        taking.unread(0)


def check_perl_pages(taking: ArgumentMatch) -> None:
    """Check `perldoc`: a page is a name, or a file if one of that name exists."""
    for at in taking.operands:
        note_role(taking, "read" if "/" in (taking.words[at].text or "/") else "revision", at)


def check_package_files(taking: ArgumentMatch) -> None:
    """Check `pkg-config`: a package is a name, or a file that describes it."""
    for at in taking.operands:
        text = taking.words[at].text or "/"
        if "/" in text or text.endswith(".pc"):
            note_role(taking, "read", at)


def take_version_control(taking: ArgumentMatch, start: int) -> None:
    """Match the commands of other version control systems; `svn status`, `hg log` and the like only read."""
    words = taking.words
    texts = [word.text for word in words[start:]]
    if texts and re.fullmatch(
        r"status|st|log|diff|di|info|blame|annotate|praise|ann|list|ls|cat|show|branches|tags|heads|parents|tip|summary|identify|id|root|paths|manifest|files|version|help|grep|timeline|op|proplist|propget|pl|pg|outgoing|incoming",
        texts[0] or "x",
    ):
        if all(
            text is not None
            and not re.match(
                r"--(config|diff-cmd|diff3-cmd|editor-cmd|extcmd|tool|password|username|repository|cwd|config-option|config-dir)|-R|-[A-Za-z]*x",
                text,
            )
            for text in texts
        ):
            taking.kind = "reads"
            taking.reasons.clear()
            taking.needs |= {"repository", "loads_project"}
            if _is_server_query(taking.path, [text for text in texts if text is not None]):
                taking.needs.add("network")
            return
        taking.doubt(start)
    elif texts and re.fullmatch(
        r"add|commit|ci|update|up|checkout|co|clone|pull|copy|cp|mkdir|branch|bookmark|tag|init|merge|resolve|resolved|mv|move|rename|new|describe|squash|edit|switch|sw",
        texts[0] or "x",
    ):
        taking.kind = "effect"
        taking.reasons.clear()
        taking.needs |= {"repository", "code", "loads_project"}
        if texts[0] in ("update", "up", "checkout", "co", "clone", "pull", "commit", "ci"):
            taking.needs.add("network")
        if not all(text is not None and not re.match(r"--(config|force|clean)|-C$|-f$", text) for text in texts):
            taking.doubt(start)


def _is_server_query(program: str, texts: Sequence[str]) -> bool:
    """Return True if a server keeps the history, or if the arguments name a server."""
    if any("://" in text for text in texts) or texts[0] in ("outgoing", "incoming") or program in ("p4", "cvs"):
        return True
    return program == "svn" and (
        texts[0] not in ("status", "st", "info", "help", "diff", "di")
        or any(re.match(r"-u|--show-updates|-r|--revision|-c|--change", text) for text in texts)
    )
