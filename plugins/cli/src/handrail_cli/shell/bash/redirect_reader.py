"""Redirections, here-documents among them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from handrail_cli.shell.bash.syntax import ShellRedirect, ShellWord, SimpleCommand
from handrail_cli.shell.bash.word_reader import WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

# What stands between words; anything else there is a part of a word for bash, as a blank behind a backslash is.
WORD_SEPARATOR = re.compile(r"(?:[ \t\n]|\\\n)*")
# What may stand in front of the number of a descriptor: behind anything else the number belongs to a word.
BEFORE_DESCRIPTOR = re.compile(r"(?:^|[\s;&|()<>])\Z")
# What `>&` redirects to without anything that bash would expand, which it does twice there.
SIMPLE_TARGET = re.compile(r"[\w./:@%+,=-]+", re.ASCII)
PUNCTUATION = frozenset((
    ";", "&", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "$(", "`", "<(", ">(", "!", '"', "$", "${", "then",
    "else", "fi", "if", "elif", "do", "done", "for", "while", "until", "in", "case", "esac", ";;", ";&", ";;&",
    "select", "function", "((", "))", "[[", "]]", "$((", ")", "[", "]", "<<", "<<-", "heredoc_start", "heredoc_end",
))  # fmt: skip
OPERATORS = frozenset((
    ">", ">>", "<", "<>", ">|", "&>", "&>>", ">&", "<&", ">&-", "<&-", "<<", "<<-", "<<<",
))  # fmt: skip
REDIRECT_NODES = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))


@dataclass(frozen=True, slots=True)
class TrailingParts:
    """Parts of a line after a redirection, which the parser puts into the redirection."""

    statements: list[Node]
    words: list[ShellWord]
    redirects: list[ShellRedirect]


class RedirectReader(WordReader):
    """The part of the pass that reads where input comes from and output goes to."""

    def between(self, at: int, node: Node) -> list[ShellWord]:
        """Return the words that the parser omits before a node: a lone `-` before a here-document."""
        gap = self.text[at : node.start_byte]
        if WORD_SEPARATOR.fullmatch(gap):
            return []
        if gap.strip(" \t\n") != "-":
            self.unclear("syntax", "something in it is passed over", node)
        return [ShellWord("-", "-", (at, node.start_byte))]

    def give(self, redirects: Sequence[ShellRedirect], first: int) -> None:
        """Give redirections to all commands from the number `first` on."""
        for number in range(first, len(self.commands)) if redirects else ():
            old = self.commands[number]
            self.commands[number] = SimpleCommand(old.words, old.assignments, (*old.redirects, *redirects), old.span)

    def continued(self, before: tuple[int, ...], later: Sequence[Node]) -> None:
        """Process the rest of the line that starts a here-document: `cat <<E | sh`, `cat <<E && ls`."""
        self.loose += 1
        for node in later:
            first = len(self.commands)
            if node.type == "pipeline":
                stages = [before]
                for child in node.children:
                    if child.type not in PUNCTUATION:
                        at = len(self.commands)
                        self.visit(child)
                        stages.append(tuple(range(at, len(self.commands))))
                self.pipelines.append(tuple(stages))
            else:
                self.visit(node)
            before = tuple(range(first, len(self.commands)))
        self.loose -= 1

    def redirect(self, node: Node, behind: TrailingParts | None = None) -> ShellRedirect:
        """Read one redirection. Parts after it that the parser puts into it are added to `behind`."""
        operator, fd = "", ""
        targets: list[ShellWord] = []
        body: ShellWord | None = None
        if self.text[node.start_byte - 1 : node.start_byte] == "}":
            self.unclear("redirect", "it puts a descriptor into a variable", node)
        for child in node.children:
            kind = child.type
            if kind == "file_descriptor":
                fd = self.raw(child)
                if not fd.isdecimal() or not BEFORE_DESCRIPTOR.search(self.text[: node.start_byte]):
                    self.unclear("redirect", f"{fd!r} is taken for a descriptor", child)
            elif kind in OPERATORS:
                operator += kind
                self.redirected_at.add(child.start_byte)
            elif kind == "heredoc_start":
                if not self.raw(child).isascii():
                    self.unclear("syntax", "a here-document ends with letters that the parser cannot tell apart", child)
            elif kind == "heredoc_body":
                body = self.heredoc(child)
            elif kind != "heredoc_end":
                targets.extend(self._target(child, node, behind))
        if node.type == "herestring_redirect":
            return ShellRedirect("<<<", None, fd, targets[0] if len(targets) == 1 else None)
        if node.type == "heredoc_redirect":
            if behind is not None:
                behind.words.extend(targets)
            return ShellRedirect("<<", None, fd, body or ShellWord("", "", self.span(node)))
        if (why := self._misread(operator, targets)) is not None:
            self.unclear("redirect", why, node)
        if len(targets) > 1 and behind is not None:
            # `> file word`: the parser takes words behind the target for more targets; they are the command's.
            behind.words.extend(targets[1:])
        return ShellRedirect(operator, targets[0] if targets else None, fd)

    def _misread(self, operator: str, targets: Sequence[ShellWord]) -> str | None:
        """Return why bash reads the targets of a redirection otherwise than the parser, or None."""
        if operator in (">&", "<&") and targets and not SIMPLE_TARGET.fullmatch(self.text[slice(*targets[0].span)]):
            return "what it redirects to is expanded twice"
        if operator in (">&-", "<&-") and targets:
            return "a word stands behind a redirection that takes none"
        if any(one.span[1] == other.span[0] for one, other in pairwise(targets)):
            return "two of its words stand together"
        return None

    def _target(self, child: Node, node: Node, behind: TrailingParts | None) -> Sequence[ShellWord]:
        """Return the words of a target; empty if only the parser takes it for one."""
        if child.type in REDIRECT_NODES:
            nested = self.redirect(child, behind)
            if behind is not None and node.type == "heredoc_redirect":
                behind.redirects.append(nested)
            else:
                self.unclear("redirect", "redirections are nested", child)
        elif self.states(child):
            if child.type == "process_substitution":
                self.unclear("redirect", "a substitution stands where a redirection ends", child)
            if behind is None:
                self.visit(child)
            else:
                behind.statements.append(child)
        elif node.type == "heredoc_redirect" and child.type in PUNCTUATION:
            pass
        elif child.is_error:
            self.unclear("syntax", "a redirection could not be parsed", child)
        else:
            return self.words_of(child)
        return ()

    def heredoc(self, node: Node) -> ShellWord:
        pieces = self.filled(node, lambda text: text)
        return self.join(node, pieces)[0]
