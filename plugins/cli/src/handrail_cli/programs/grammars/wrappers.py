"""Programs that run the command that follows, in grammars of their own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role
from handrail_cli.programs.values import InnerRun
from handrail_cli.shell.bash.syntax import ShellWord

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL | re.ASCII)
XARGS_PLAIN = re.compile(r"-[0rtx]+|--null|--no-run-if-empty|--verbose|--exit|--open-tty|-o")
XARGS_VALUED = re.compile(r"-[dEnLPs]|--(delimiter|eof|max-args|max-lines|max-procs|max-chars)")
PARALLEL_PLAIN = re.compile(
    r"-[0kqtuvX]+|--(keep-order|null|dry-run|dryrun|verbose|quote|group|ungroup|line-buffer|lb|bar|eta|progress|will-cite|no-notice|xargs|plus|trim)"
)
PARALLEL_VALUED = re.compile(
    r"-[jnNLIPs]|--(jobs|max-procs|max-args|max-replace-args|delay|timeout|retries|halt|load|memfree|nice|colsep|tag)"
)


def take_env(taking: ArgumentMatch, start: int) -> None:
    """Match `env [-i] [-u NAME] [NAME=VALUE]… [COMMAND]`; alone it shows every variable."""
    words = taking.words
    at = start
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        if text in ("-u", "--unset") and at + 1 < len(words):
            at += 1
        elif text in ("-C", "--chdir") and at + 1 < len(words):
            at += 1
            taking.name("folder", at)
        elif re.fullmatch(r"--chdir=.+", text):
            taking.name("folder", at, text.partition("=")[2])
        elif text in ("--help", "--version") and at == start:
            return
        elif (split := re.fullmatch(r"(?:-v?S|--split-string=)(.*)", text, re.DOTALL)) is not None:
            _take_split_string(taking, at, split[1])
            return
        elif re.fullmatch(r"-u.+|--unset=.+", text):
            pass
        elif not re.fullmatch(r"-|-i|-0|-v|--ignore-environment|--null|--debug", text):
            taking.unread(at)
            return
        at += 1
        if text == "--":
            break
    while at < len(words) and ASSIGNMENT.fullmatch(words[at].text or words[at].guess):
        taking.name("sets", at)
        at += 1
    if at < len(words):
        taking.inner.append(InnerRun(at, len(words)))
    elif not any(word.text in ("-i", "-", "--ignore-environment") for word in words[start:]):
        taking.worsen("dangerous", code="secret", why="it shows all variables, credentials among them", at=0)


def _take_split_string(taking: ArgumentMatch, at: int, text: str) -> None:
    """Match `env -S 'CODE'`: several words in one, with their own escape sequences."""
    rest = taking.words[at + (1 if text else 2) :]
    first = text or (taking.words[at + 1].text if at + 1 < len(taking.words) else None)
    texts = [word.text for word in rest]
    if first is None or None in texts or re.search(r"[\\$#]", first):
        taking.unread(at)
        return
    code = " ".join([first, *(text for text in texts if text is not None)])
    taking.inner.append(InnerRun(at, len(taking.words), code, "bash"))


def take_xargs(taking: ArgumentMatch, start: int) -> None:
    """Match `xargs [OPTIONS] [COMMAND]`: its input becomes more words of the command, or replaces a mark."""
    words = taking.words
    mark: str | None = None
    at = start
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-") and text != "-":
        if text == "--":
            at += 1
            break
        if text in ("-a", "--arg-file") and at + 1 < len(words):
            at += 1
            taking.name("read", at)
            taking.needs.add("reads_list")
        elif re.fullmatch(r"-a.+|--arg-file=.+", text):
            taking.name("read", at, text.partition("=")[2] if text.startswith("--") else text[2:])
            taking.needs.add("reads_list")
        elif text == "-I" and at + 1 < len(words):
            at += 1
            mark = words[at].text
        elif (attached := re.fullmatch(r"-I(.+)|-i(.*)|--replace(?:=(.*))?", text)) is not None:
            mark = next((group for group in attached.groups() if group), "{}")
        elif XARGS_VALUED.fullmatch(text) and at + 1 < len(words):
            at += 1
        elif not (
            XARGS_PLAIN.fullmatch(text) or re.fullmatch(r"-[dEnLPs].+|-[el]\w*|--[\w-]+=.*", text)
        ) or not _is_known_option(text):
            taking.unread(at)
            return
        at += 1
    if at < len(words):
        taking.inner.append(InnerRun(at, len(words), gets="input", mark=mark))
    else:
        taking.inner.append(InnerRun(at, at, "echo", "bash", gets="input", mark=mark))


def _is_known_option(text: str) -> bool:
    return not text.startswith("--") or bool(
        XARGS_PLAIN.fullmatch(text) or XARGS_VALUED.fullmatch(text.partition("=")[0]) or text.startswith("--arg-file=")
    )


def take_parallel(taking: ArgumentMatch, start: int) -> None:
    """Match `parallel [OPTIONS] [COMMAND] [::: WORDS…]`: a shell runs the joined command once for each word."""
    words = taking.words
    at = start
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        if text in ("-a", "--arg-file") and at + 1 < len(words):
            at += 1
            taking.name("read", at)
            taking.needs.add("reads_list")
        elif PARALLEL_VALUED.fullmatch(text) and at + 1 < len(words) and text != "--tag":
            at += 1
        elif text != "--tag" and not PARALLEL_PLAIN.fullmatch(text) and not _has_joined_value(text):
            taking.unread(at)
            return
        at += 1
    if any(word.text == "--" for word in words[at:]):
        # In another program of that name the words for the command follow.
        taking.unread(at)
        return
    split = next((n for n in range(at, len(words)) if words[n].text in (":::", ":::+", "::::", "::::+")), len(words))
    if any((words[n].text or "").startswith("::::") for n in range(split, len(words))):
        taking.needs.add("reads_list")
        for n in range(split + 1, len(words)):
            taking.name("read", n)
        _take_template(taking, words[at:split], at, None)
        return
    items = [word for word in words[split:] if not (word.text or "").startswith(":::")]
    _take_template(taking, words[at:split], at, items if split < len(words) else None)


def _has_joined_value(text: str) -> bool:
    return bool(re.fullmatch(r"-[jnNLIPs]\S+", text)) or bool(
        text.startswith("--") and "=" in text and PARALLEL_VALUED.fullmatch(text.partition("=")[0])
    )


def _take_template(
    taking: ArgumentMatch, command: Sequence[ShellWord], at: int, items: Sequence[ShellWord] | None
) -> None:
    """Note the code for each word; if the words are unknown, only the code itself."""
    texts = [word.text for word in command]
    if None in texts or (items is not None and any(word.text is None or word.glob for word in items)):
        taking.unread(at)
        return
    template = " ".join(text for text in texts if text is not None)
    end = len(taking.words)
    if items is None:
        taking.inner.append(
            InnerRun(at, end, template or None, "bash", gets="input", mark="{}" if "{}" in template else None)
        )
        if not template:
            taking.worsen("dangerous", code="hidden_code", why="parallel runs the lines that it reads", at=0)
        return
    if re.search(r"\{[^}]+\}", template) or len(items) > MAX_ITEMS:
        taking.unread(at)
        return
    for item in items:
        text = item.text or ""
        # Behind a command it is put as one word; some versions and options put it as it stands.
        for put in dict.fromkeys((shlex.quote(text), text) if template else (text,)):
            code = template.replace("{}", put) if "{}" in template else f"{template} {put}".strip()
            taking.inner.append(InnerRun(at, end, code, "bash"))


MAX_ITEMS = 32


def take_command(taking: ArgumentMatch, start: int) -> None:
    """Match `command NAME …`, which runs NAME, and `command -v NAME`, which describes it."""
    words = taking.words
    at = start
    if at < len(words) and words[at].text in ("-v", "-V"):
        wrong = [n for n in range(at + 1, len(words)) if words[n].text is None or words[n].guess.startswith("-")]
        if wrong:
            taking.doubt(wrong[0])
        return
    while at < len(words) and words[at].text in ("-p", "--"):
        at += 1
    if at < len(words):
        taking.inner.append(InnerRun(at, len(words)))


def take_flock(taking: ArgumentMatch, start: int) -> None:
    """Match `flock FILE COMMAND…`, `flock FILE -c CODE`, `flock NUMBER`."""
    words = taking.words
    at = start
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        if re.fullmatch(r"-[wE]|--(wait|timeout|conflict-exit-code)", text):
            at += 1
        elif not re.fullmatch(r"-[sexunoFv]+|-w\d+|--[a-z-]+(=\d+)?", text):
            taking.unread(at)
        at += 1
    if at < len(words):
        note_role(taking, "create", at)
    if at + 2 < len(words) and words[at + 1].text in ("-c", "--command"):
        note_role(taking, "shell", at + 2)
    elif at + 1 < len(words):
        taking.inner.append(InnerRun(at + 1, len(words)))


def take_watch(taking: ArgumentMatch, start: int) -> None:
    """Match `watch COMMAND…`, which passes its words to a shell, and `watch -x COMMAND…`, which runs them."""
    words = taking.words
    at = start
    execute = False
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        execute |= re.fullmatch(r"-[a-zA-Z]*x[a-zA-Z]*|--exec", text) is not None
        if re.fullmatch(r"-[a-zA-Z]*[nqs]|--(interval|equexit|shotsdir)", text):
            at += 1
        elif not re.fullmatch(r"-[bcCdegrtwxfp]+|-n[\d.,]+|-d=\w+|--[a-z-]+(=[\w.]+)?", text):
            taking.unread(at)
        at += 1
    if at >= len(words):
        return
    texts = [word.text for word in words[at:]]
    if execute:
        taking.inner.append(InnerRun(at, len(words)))
    elif None in texts:
        taking.unread(at)
    else:
        taking.inner.append(InnerRun(at, len(words), " ".join(text for text in texts if text is not None), "bash"))


def take_script(taking: ArgumentMatch, start: int) -> None:
    """Match `script -c CODE FILE`; without code it starts a shell."""
    words = taking.words
    at = start
    code = False
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        if re.fullmatch(r"-[aefq]*c|--command", text) and at + 1 < len(words):
            at += 1
            note_role(taking, "shell", at)
            code = True
        elif (attached := re.fullmatch(r"-[aefq]*c(.+)|--command=(.*)", text, re.DOTALL)) is not None:
            note_role(taking, "shell", at, attached[1] or attached[2])
            code = True
        elif not re.fullmatch(r"-[aefqE]+|--(append|return|flush|force|quiet)", text):
            taking.unread(at)
        at += 1
    for number in range(at, len(words)):
        note_role(taking, "write", number)
    if not code:
        taking.worsen("dangerous", code="shell", why="script starts a shell", at=0)


def take_applet(taking: ArgumentMatch, start: int) -> None:
    """Match `busybox NAME …`."""
    words = taking.words
    if len(words) <= start or words[start].text in ("--list", "--help", "--list-full"):
        return
    if words[start].text == "httpd":
        taking.worsen("dangerous", code="serves", why="httpd serves files", at=start)
    taking.inner.append(InnerRun(start, len(words)))


def take_hyperfine(taking: ArgumentMatch, start: int) -> None:
    """Match `hyperfine`, each operand of which is code for a shell."""
    words = taking.words
    at = start
    while at < len(words):
        text = words[at].text
        if text in ("-p", "--prepare", "-s", "--setup", "-c", "--cleanup", "--conclude") and at + 1 < len(words):
            at += 1
            note_role(taking, "shell", at)
        elif re.fullmatch(r"-[wrmMn]|--(warmup|runs|min-runs|max-runs|command-name|style|time-unit)", text or ""):
            at += 1
        elif re.fullmatch(r"--export-(json|csv|markdown|asciidoc|orgmode)", text or "") and at + 1 < len(words):
            at += 1
            note_role(taking, "write", at)
        elif text is None or (text.startswith("-") and text not in ("-N", "-i", "--ignore-failure", "--show-output")):
            taking.unread(at)
        elif not text.startswith("-"):
            note_role(taking, "shell", at)
        at += 1


def take_privilege(taking: ArgumentMatch, start: int) -> None:
    """Match `sudo [OPTIONS] COMMAND…`, `su -c CODE USER`: dangerous with any command; the command is still analyzed."""
    words = taking.words
    name = taking.path
    at = start
    while (
        at < len(words)
        and (text := words[at].text) is not None
        and (text.startswith("-") or ASSIGNMENT.fullmatch(text))
    ):
        if (
            name in ("su", "runuser", "sg")
            and re.fullmatch(r"-[a-z]*c|--(session-)?command", text)
            and at + 1 < len(words)
        ):
            note_role(taking, "shell", at + 1)
            return
        if text == "--":
            at += 1
            break
        at += (
            2
            if re.fullmatch(
                r"-[a-zA-Z]*[ugpCDRrtTUhaE]|--(user|group|prompt|chdir|chroot|role|type|host|unit|property|setenv|slice|uid|gid|working-directory)",
                text,
            )
            and not (text.endswith("E") and name == "sudo")
            else 1
        )
    if name in ("sg", "su-exec", "gosu", "setuidgid", "newgrp", "su"):
        at += 1
    if at < len(words) and name != "su":
        taking.inner.append(InnerRun(at, len(words)))


def take_builtin(taking: ArgumentMatch, start: int) -> None:
    """Match builtins that show or change the shell, and distinguish showing from changing."""
    words = taking.words
    name = taking.path
    texts = [word.text for word in words[start:]]
    if name in ("set", "declare", "typeset", "export", "readonly") and all(text in SHOW_OPTIONS for text in texts):
        taking.worsen("dangerous", code="secret", why="it shows all variables, credentials among them", at=0)
    elif name == "history" and not all(re.fullmatch(r"\d+", text or "x") for text in texts):
        taking.worsen("dangerous", code="destructive", why="it changes the history of commands", at=0)
    elif name == "fc" and texts[:1] != ["-l"]:
        taking.worsen("dangerous", code="hidden_code", why="it runs earlier commands", at=0)
    elif name in ("eval", "trap", "source", ".", "enable", "bind", "complete"):
        taking.worsen("dangerous", code="hidden_code", why=f"{name} runs other code", at=0)
        if name == "eval" and texts and None not in texts:
            taking.inner.append(
                InnerRun(start, len(words), " ".join(text for text in texts if text is not None), "bash")
            )
        elif name == "trap" and len(texts) > 1 and texts[0] is not None and not texts[0].startswith("-"):
            taking.inner.append(InnerRun(start, start + 1, texts[0], "bash"))
        elif name in ("source", ".") and texts:
            taking.name("execute", start)
    elif name == "compgen":
        _take_completions(taking, start)
    elif name in SHOWING_BUILTINS or (
        name in ("umask", "ulimit", "shopt", "alias") and all(SHOW_WORD.fullmatch(text or "=") for text in texts)
    ):
        return
    else:
        taking.worsen("effect")


def _take_completions(taking: ArgumentMatch, start: int) -> None:
    """Match `compgen`: `compgen -C COMMAND` and `-F FUNCTION` run code, and the words of `-W` are expanded."""
    words = taking.words
    at = start
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        value = words[at + 1].text if at + 1 < len(words) else None
        if re.fullmatch(r"-[AoGXPS]", text) or (text == "-W" and value is not None and not re.search(r"[$`]", value)):
            at += 1
        elif text == "-C" and value is not None:
            at += 1
            note_role(taking, "shell", at)
        elif not re.fullmatch(r"-[abcdefgjksuv]+|--", text):
            taking.worsen("dangerous", code="hidden_code", why="compgen runs what makes the completions", at=at)
            return
        at += 1
    if any(word.text is None for word in words[at:]):
        taking.doubt(at)


SHOW_OPTIONS = frozenset(("-p", "-x", "-xp", "-px", "-o", "+o"))
SHOW_WORD = re.compile(r"-[aSHpqtnfuvlcdesimrxT]+|\w+")
SHOWING_BUILTINS = frozenset(("dirs", "jobs", "times", "caller", "history", "fc"))
