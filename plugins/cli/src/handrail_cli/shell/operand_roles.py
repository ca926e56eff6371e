"""Roles of a command's words for its program: a file it reads or writes, an address, a link's target, a variable."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from handrail import Access, EvaluationContext, Reason
from handrail.fs import path_resolution
from handrail.net import urls
from handrail.redaction import is_credential
from handrail.undo.path_patterns import SOME_BELOW
from handrail_cli.programs import NamedOperand, ProgramUse
from handrail_cli.programs.values import OperandRole
from handrail_cli.shell.bash.syntax import ShellWord, SimpleCommand
from handrail_cli.shell.path_effects import CommandEffects

if TYPE_CHECKING:
    from handrail_cli.shell.analyzer import LineAnalyzer

SECRET_SETTING = re.compile(r"(?i)token|passw|secret|cred|auth|header|key|url|proxy|cookie")
SOURCE_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# Kept from every tool, and from commands unless a person says so each time. This machine's own ports are where a project's servers are tried.
CLOSED_CODES = frozenset(("metadata_address", "private_address", "private_name"))
# Programs that put each file into a folder under its own name, and options with which they do not.
NAME_KEEPING_PROGRAMS = frozenset(("cp", "mv"))
RENAMING_OPTION = re.compile(r"-[A-Za-z]*T|--no-t|--pa")
LOOPBACK_HOST = re.compile(r"localhost|.*\.localhost|127(\.\d+){3}|\[::1\]", re.IGNORECASE)


class ProgramOperand(NamedTuple):
    """Word of a command, or part of it (`text`; None if unknown), with all of the command's words."""

    named: NamedOperand
    words: Sequence[ShellWord]
    use: ProgramUse

    @property
    def word(self) -> ShellWord:
        return self.words[self.named.word_index]

    @property
    def text(self) -> str | None:
        return self.word.text if self.named.value is None else self.named.value


def judge_operand(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Take down what one word is to the program."""
    ROLE_JUDGES[operand.named.role](weighing, operand, effects)


def _judge_nothing(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Do nothing: such an operand has no effect in itself."""


def _judge_list(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    weighing.places.read(operand.word, effects, text=operand.named.value, listing=True)


def _judge_read(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    text = operand.text
    if text is not None and SOURCE_ADDRESS.match(text) and not text.startswith("file://"):
        _judge_remote(weighing, operand, effects)
        return
    weighing.places.read(operand.word, effects, text=None if text is None else text.removeprefix("file://") or "/")


def _judge_write(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    weighing.places.write(operand.word, effects, text=operand.text, names_unknown=True)


def _judge_add(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Something that is made or changed, while the contents of what is there stay."""
    weighing.places.write(operand.word, effects, text=operand.text, loses=False)


def _judge_change(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge a file that is changed in place, which depends on its present state."""
    _judge_add(weighing, operand, effects)
    found = weighing.places.resolved(operand.text) if operand.text is not None else ()
    effects.reads_changeable = effects.reads_changeable or any(map(weighing.places.changeable, found))


def _judge_create(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge a directory, an empty file or a link that is created, which may replace a file of its name."""
    links = any(other.role == "target" for other in operand.use.named)
    weighing.places.write(operand.word, effects, text=operand.text, loses=links)


def _judge_destination(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge a destination: a file, or a directory that receives copies under their own names."""
    text, words = operand.text, operand.words
    weighing.places.write(operand.word, effects, text=text, into=_list_copied_names(operand), names_unknown=True)
    if text is None:
        return
    for other in operand.use.named:
        if other.role in ("read", "move") and other.word_index != len(words):
            name = (words[other.word_index].text or "").rstrip("/").rpartition("/")[2]
            if name and path_resolution.describe_autorun(PurePosixPath(name)) is not None:
                weighing.places.write(operand.word, effects, text=text, name=name)


def _list_copied_names(operand: ProgramOperand) -> list[str]:
    """Return the names of copied files in their destination directory.

    Empty if not all are known, or if the program chooses other names.
    """
    first, *given = (word.guess for word in operand.words)
    if first.rpartition("/")[2] not in NAME_KEEPING_PROGRAMS or any(map(RENAMING_OPTION.match, given)):
        return []
    names: list[str] = []
    for other in operand.use.named:
        if other.role in ("read", "move") and other.word_index < len(operand.words):
            source = operand.words[other.word_index]
            text = source.text if other.value is None else other.value
            name = (text or "").rstrip("/").rpartition("/")[2]
            if source.glob or name in ("", ".", ".."):
                return []
            names.append(name)
    return names


def _judge_delete(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    text = operand.text
    if text is not None and _is_search_folder(operand):
        weighing.places.delete(operand.word, effects, text=f"{text.rstrip('/')}/{SOME_BELOW}")
    else:
        weighing.places.delete(operand.word, effects, text=text)


def _is_search_folder(operand: ProgramOperand) -> bool:
    """Return True if the operand is a directory to search; the effect applies to files selected inside it."""
    at = operand.named.word_index
    return any(other.role == "list" and other.word_index == at for other in operand.use.named)


def _judge_delete_tree(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    weighing.places.delete(operand.word, effects, text=operand.text, tree=True)


def _judge_move(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Something that goes away from where it is, and is somewhere else then."""
    _judge_delete_tree(weighing, operand, effects)
    if len(operand.use.named) == 2 and operand.text is not None and not operand.word.glob:
        other = next(other for other in operand.use.named if other is not operand.named)
        text = operand.words[other.word_index].text if other.role == "dest" and other.value is None else None
        if text is not None and text.rpartition("/")[2] not in ("", ".", ".."):
            effects.renamed += weighing.places.renamed(operand.text, text)


def _judge_execute(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    name = operand.words[0].guess.rpartition("/")[2]
    weighing.execute(operand.word, operand.text, effects, by=name)
    if "code" not in operand.use.needs and effects.obeys_workspace:
        # Unlike a build tool or an interpreter, it is not expected to run anything of the workspace.
        told = f"{name!r} loads {operand.word.guess!r}, which commands in the sandbox may change"
        effects.warn_on_host("code", told, operand.word)


def _judge_link_target(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge the target of a new link: from then on, what is behind the link is unknown."""
    text, word, places = operand.text, operand.word, weighing.places
    if text is None:
        effects.warn("unknown_target", "what the link points to is not known", word)
        return
    for found in places.resolved(text):
        if (what := path_resolution.describe_secret(found.real)) is not None:
            effects.warn("secret", f"{text!r} keeps {what}", word)
        elif (kept := places.holds_secret(text, glob=False)) is not None:
            effects.warn("secret", f"{text!r} leads to {kept!r}, which keeps secrets", word)
        if path_resolution.is_protected_path(found.path, weighing.judging.protected):
            effects.warn("own", "files by which Handrail judges are named in it", word)
    linked, name = weighing.linked, text.rstrip("/").rpartition("/")[2]
    for other in operand.use.named:
        place = operand.words[other.word_index].text if other.role in ("create", "dest", "write") else None
        for found in places.resolved(place) if place is not None else ():
            linked.update((found.written, f"{found.written}/{name}"))
    linked.update(found.written for found in places.resolved(name or "."))


def _judge_remote(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge an address that a command connects to."""
    text, word = operand.text, operand.word
    if text is not None and operand.use.reaches == "git" and (effects.hosts or not effects.network):
        # It may be the name of a remote, whose hosts are known already, or is a repository of this machine.
        return
    if text is not None and text.lower().startswith("file:"):
        weighing.places.read(word, effects, text=re.sub(r"^file:/*", "/", text, flags=re.IGNORECASE))
        return
    if text is None:
        if word.inner:
            effects.warn("sends_data", "what a command prints goes into an address", word)
        else:
            effects.ask("unknown_host", "which machine it connects to is not known", word)
        return
    judge_host(urls.find_url_place(text), word, weighing.judging, effects)


def judge_host(host: str, word: ShellWord, judging: EvaluationContext, effects: CommandEffects) -> None:
    """Take down a host that the program connects to."""
    effects.touches.append(Access("network", host))
    if (reason := _find_closed_reason(host, judging.allow_private)) is not None:
        effects.warn(reason.code, reason.text, word)


def _find_closed_reason(host: str, allow_private: Sequence[str]) -> Reason | None:
    """Return why a host (`name`, `name:port`) is on the inner network or is a cloud machine's own.

    None for other hosts, and for this machine.
    """
    name = re.sub(r":\d+$", "", host)
    # A single word may as well be the name of a remote.
    if LOOPBACK_HOST.fullmatch(name) or not any(mark in name for mark in ".:"):
        return None
    return next(
        (r for r in urls.evaluate_host(name, allow_private=allow_private).reasons if r.code in CLOSED_CODES), None
    )


def _judge_device(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    effects.touches.append(Access("write", operand.text or ""))


def _judge_setting(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge `name=value`, set for the command that is run."""
    word = operand.word
    name, _, value = word.guess.partition("=")
    set_to = ShellWord(value if word.text is not None else None, value, word.span, word.glob)
    weighing.prefix(name, set_to, SimpleCommand((), (), (), word.span))


def _judge_revision(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge a commit that is shown; if a file has its name, it is read as that file."""
    if (text := _find_file_of_revision(weighing, operand, effects)) is not None:
        weighing.places.read(operand.word, effects, text=text)


def _judge_branch(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    """Judge a branch that is changed to; if a file has its name, that file is restored."""
    if (text := _find_file_of_revision(weighing, operand, effects)) is not None:
        effects.warn("destructive", f"it throws away what was changed in {text!r}", operand.word)


def _find_file_of_revision(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> str | None:
    """Return the name of a commit that is also the name of a file, or None."""
    text = operand.text
    if text is None:
        effects.ask("unknown_word", "whether it is a branch or a file is not known", operand.word)
        return None
    there = any(os.path.lexists(os.path.join(str(cwd), text)) for cwd in weighing.places.cwds)
    return text if there else None


def _judge_variable(weighing: LineAnalyzer, operand: ProgramOperand, effects: CommandEffects) -> None:
    text = operand.text
    if text is None or is_credential(text, "") or SECRET_SETTING.search(text):
        effects.warn("secret", "it shows variables that may be credentials", operand.word)


ROLE_JUDGES: Mapping[OperandRole, Callable[[LineAnalyzer, ProgramOperand, CommandEffects], None]] = {
    **dict.fromkeys(("folder", "name"), _judge_nothing),
    "list": _judge_list,
    **dict.fromkeys(("read", "send"), _judge_read),
    "write": _judge_write,
    "create": _judge_create,
    "append": _judge_add,
    **dict.fromkeys(("change", "change_tree"), _judge_change),
    "dest": _judge_destination,
    "delete": _judge_delete,
    "move": _judge_move,
    "delete_tree": _judge_delete_tree,
    "execute": _judge_execute,
    "target": _judge_link_target,
    **dict.fromkeys(("url", "host"), _judge_remote),
    "device": _judge_device,
    "sets": _judge_setting,
    "revision": _judge_revision,
    "branch": _judge_branch,
    "variable": _judge_variable,
}
