"""Policy rules: matching of calls, and of parts of a call.

No regular expressions are used: `*` matches any characters of a word (or of one name in a path), `**` any number of
words (or of folders). A confirm or deny matches a part if anything in it fits; an allow only if everything in it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal, get_args
from weakref import WeakKeyDictionary

from handrail.api.tool import Run, Tool
from handrail.api.verdict import (
    OPAQUE_COMMAND,
    STRICTNESS,
    Access,
    Decision,
    EvaluationContext,
    Mode,
    Route,
    SubCommand,
)
from handrail.config.rule_settings import FileAccess, RuleSettings
from handrail.fs import path_resolution
from handrail.net import hostnames

__all__ = ["is_wildcard_match"]

# From the weakest to the strongest. Below all of them is what the evaluators suggest.
RuleTier = Literal["plugin", "workspace", "user", "admin"]
RULE_TIERS: tuple[RuleTier, ...] = get_args(RuleTier)
# Whose rules may lift a floor.
PERSONAL_TIERS: frozenset[RuleTier] = frozenset(("user", "admin"))

FILE_ACCESS: frozenset[str] = frozenset(get_args(FileAccess))
# The word in `lifts` for what is otherwise denied in every mode.
CATASTROPHIC = "catastrophic"


@dataclass(frozen=True, slots=True)
class RuleOrigin:
    """Origin of a rule: the `index`-th, from 0, of a file's `[[policy.rules]]`, or a plugin's."""

    source: str = ""
    index: int | None = None


@dataclass(frozen=True, slots=True)
class RuleFit:
    """Result of matching a rule. `key`: the first of its matchers that fails or, if doubtful, cannot decide."""

    yes: bool
    key: str = ""
    doubtful: bool = False


FULL_FIT = RuleFit(True)


@dataclass(frozen=True, slots=True)
class Rule:
    """Policy rule; the fields are those of `rule_settings.RuleSettings`, which documents them.

    `tightening`: it is from an untrusted folder or plugin, and counts only if it is stricter than the decision without
    it.
    """

    tools: tuple[str, ...]
    decision: Decision
    command: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    access: tuple[FileAccess, ...] = ()
    hosts: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    server: str | None = None
    kinds: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    read_only: bool | None = None
    modes: tuple[Mode, ...] = ()
    interactive: bool | None = None
    route: Route | None = None
    reason: str = ""
    name: str = ""
    priority: int = 0
    lifts: tuple[str, ...] = ()
    tier: RuleTier = "user"
    tightening: bool = False
    origin: RuleOrigin = RuleOrigin()

    @property
    def called(self) -> str:
        """Its name, or what it says of which calls."""
        words = (*self.command, *self.argv, *self.options, *self.paths, *self.hosts)
        return self.name or " ".join((",".join(self.tools), *words))

    @property
    def whole(self) -> bool:
        """True if the rule matches every call of its tools, regardless of arguments."""
        return not (self.command or self.argv or self.options or self.paths or self.access or self.hosts)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of rules that speak of the same, the one with the highest rank answers: by tier, then priority, then strictness."""
        return (RULE_TIERS.index(self.tier), self.priority, STRICTNESS[self.decision])

    def of_tool(self, tool: Tool) -> RuleFit:
        """Match the rule against a tool: yes if it applies to any call of the tool."""
        return next((RuleFit(False, key) for key, fits in TOOL_MATCHERS.items() if not fits(self, tool)), FULL_FIT)

    def of_session(self, judging: EvaluationContext) -> RuleFit:
        """Match the rule against the session's mode, and against the presence of a user to ask."""
        if self.modes and judging.mode not in self.modes:
            return RuleFit(False, "modes")
        if self.interactive is not None and self.interactive != judging.interactive:
            return RuleFit(False, "interactive")
        return FULL_FIT

    def of_part(self, part: SubCommand, tool: Tool, judging: EvaluationContext, places: RulePaths) -> RuleFit:
        """Match the rule against a part of a call; an allow must cover everything the part does."""
        if self.decision is Decision.ALLOW:
            return self.covers(part, judging, places)
        return self._concerns(part, tool, judging, places)

    def covers(self, part: SubCommand, judging: EvaluationContext, places: RulePaths) -> RuleFit:
        """Match the rule against everything a part of a call does, as required for an allow and to lift a floor."""
        if part.argv == OPAQUE_COMMAND:
            return RuleFit(False, "command")
        if self.command or self.argv or self.options:
            misfit = self._misfit(part.argv, loosely=False) if part.argv else "command"
            if misfit:
                return RuleFit(False, misfit)
        if self.paths or self.access or self.hosts:
            return self._covers_touches(part.touches, judging, places)
        return FULL_FIT

    def _misfit(self, words: Sequence[str], *, loosely: bool) -> str:
        """Return the first of `command`, `argv` and `options` that the words do not fit, or an empty string.

        `loosely`: accept other ways to write the same, too.
        """
        if self.command and not (
            _is_command_match(self, words, loosely) or (loosely and _has_options_before(self, words))
        ):
            return "command"
        if self.argv and not _is_argv_match(self, words, loosely):
            return "argv"
        return "options" if self.options and not _has_option_match(self, words, loosely) else ""

    def _covers_touches(self, touches: Sequence[Access], judging: EvaluationContext, places: RulePaths) -> RuleFit:
        """Match everything that is accessed.

        Every file must fit `paths` and `access`, every host `hosts`; other accesses are covered only if the rule names
        the command.
        """
        files = [touch for touch in touches if touch.kind in FILE_ACCESS]
        hosts = [touch for touch in touches if touch.kind == "network"]
        named = bool(self.command or self.argv)
        if self.paths or self.access:
            wanted = self.access or FILE_ACCESS
            inside = all(t.what and t.kind in wanted and places.below(t.what, self.paths, judging) for t in files)
            if not files or not inside:
                return RuleFit(False, "paths")
        elif files and not named:
            return RuleFit(False, "paths")
        if self.hosts:
            if not hosts or not all(
                touch.what and any(_is_host_match(p, touch.what) for p in self.hosts) for touch in hosts
            ):
                return RuleFit(False, "hosts")
        elif hosts and not named:
            return RuleFit(False, "hosts")
        return FULL_FIT if named or len(files) + len(hosts) == len(touches) else RuleFit(False, "command")

    def _concerns(self, part: SubCommand, tool: Tool, judging: EvaluationContext, places: RulePaths) -> RuleFit:
        unread = part.argv == OPAQUE_COMMAND or (not part.argv and is_command_tool(tool))
        doubt = ""
        if self.command or self.argv or self.options:
            if unread:
                doubt = "command"
            elif misfit := self._misfit(part.argv, loosely=True):
                return RuleFit(False, misfit)
            elif self.command and not _is_command_match(self, part.argv, loosely=True):
                doubt = "command"
        if self.paths or self.access:
            wanted = self.access or FILE_ACCESS
            files = [touch for touch in part.touches if touch.kind in wanted]
            if not any(t.what and places.meets(t, self.paths, judging) for t in files):
                if not unread and all(touch.what for touch in files):
                    return RuleFit(False, "paths")
                doubt = doubt or "paths"
        if self.hosts:
            hosts = [touch.what for touch in part.touches if touch.kind == "network"]
            if not any(host and any(_is_host_match(pattern, host) for pattern in self.hosts) for host in hosts):
                if not unread and all(hosts):
                    return RuleFit(False, "hosts")
                doubt = doubt or "hosts"
        return RuleFit(True, doubt, doubtful=True) if doubt else FULL_FIT


def is_command_tool(tool: Tool) -> bool:
    """Return True if a tool runs commands, which rules may match word by word."""
    return any(isinstance(effect, Run) for effect in tool.effects)


# --- matchers ------------------------------------------------------------------------------------------------------------------------------


def _is_name_match(rule: Rule, tool: Tool) -> bool:
    names = [*tool.names]
    if rule.server is not None and tool.server is not None:
        # The name that a server gave it counts, too, where the rule says which server it means.
        own = tool.remote.name if tool.remote is not None else tool.name
        names += [own, f"mcp_{tool.server}_{own}"]
    return any(is_wildcard_match(pattern, name) for pattern in rule.tools for name in names)


def _is_server_match(rule: Rule, tool: Tool) -> bool:
    if rule.server is not None:
        return tool.server is not None and is_wildcard_match(rule.server, tool.server)
    # A server chooses its tools' names: an allow that does not say whose tool it means is not for tools of servers.
    return tool.server is None or rule.decision is not Decision.ALLOW


def _is_effects_match(rule: Rule, tool: Tool) -> bool:
    if not rule.effects:
        return True
    declared = [(type(effect).__name__.lower(), effect.what) for effect in tool.effects]
    fitting = [any(_is_effect_match(wanted, verb, what) for wanted in rule.effects) for verb, what in declared]
    return bool(fitting) and (all(fitting) if rule.decision is Decision.ALLOW else any(fitting))


def _is_effect_match(wanted: str, verb: str, what: str) -> bool:
    kind, _, of = wanted.partition(":")
    return kind == verb and of in ("", what)


TOOL_MATCHERS: dict[str, Callable[[Rule, Tool], bool]] = {
    "tool": _is_name_match,
    "layer": lambda rule, tool: not rule.layers or tool.layer in rule.layers,
    "server": _is_server_match,
    "kind": lambda rule, tool: not rule.kinds or tool.kind in rule.kinds,
    "read_only": lambda rule, tool: rule.read_only is None or tool.read_only == rule.read_only,
    "effects": _is_effects_match,
}


def _is_command_match(rule: Rule, words: Sequence[str], loosely: bool) -> bool:
    count = len(rule.command)
    rest = len(words) >= count and tuple(words[1:count]) == rule.command[1:]
    return rest and _is_program_match(rule.command[0], words[0], loosely)


def _has_options_before(rule: Rule, words: Sequence[str]) -> bool:
    """Return True if options precede the other words of the rule's command, as in `git -C x push`.

    Whether an option takes a value is unknown here; both readings count.
    """
    rest = rule.command[1:]
    if not rest or not words or not _is_program_match(rule.command[0], words[0], loosely=True):
        return False
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if any(tuple(words[start : start + len(rest)]) == rest for start in (at + 1, at + 2)):
            return True
        at += 1 if words[at + 1 : at + 2] and words[at + 1].startswith("-") else 2
    return False


def _is_argv_match(rule: Rule, words: Sequence[str], loosely: bool) -> bool:
    if loosely and words and rule.argv[0] != "**" and _is_program_match(rule.argv[0], words[0], loosely):
        return is_words_match(rule.argv[1:], words[1:])
    return is_words_match(rule.argv, words)


def _has_option_match(rule: Rule, words: Sequence[str], loosely: bool) -> bool:
    given = list(words[1:])
    if "--" in given:
        given = given[: given.index("--")]
    return any(_is_option_match(option, word, loosely) for option in rule.options for word in given)


def _is_program_match(pattern: str, word: str, loosely: bool) -> bool:
    if pattern == word or ("*" in pattern and is_wildcard_match(pattern, word)):
        return True
    if not loosely or "/" in pattern or "\\" in pattern:
        return False
    return is_wildcard_match(_bare_program_name(pattern), _bare_program_name(word))


def _bare_program_name(program: str) -> str:
    name = program.replace("\\", "/").rpartition("/")[2].casefold()
    return next((name.removesuffix(end) for end in (".exe", ".cmd", ".bat", ".com") if name.endswith(end)), name)


def _is_option_match(option: str, word: str, loosely: bool) -> bool:
    if is_wildcard_match(option, word) or is_wildcard_match(option, word.partition("=")[0]):
        return True
    if not loosely:
        return False
    if len(option) > 2:
        # Programs take a long option by any beginning of it that is clear.
        least = 4 if option.startswith("--") else 3
        return len(word) >= least and option.casefold().startswith(word.partition("=")[0].casefold())
    # `-xf` is `-x -f`.
    return len(option) == 2 and word[:1] == "-" and word[1:2] not in ("", "-") and option[1] in word


def _is_host_match(pattern: str, what: str) -> bool:
    """Return True if `host` or `host:port` fits; a leading `*.` matches one or more labels, `*` any host."""
    (name, port), (host, at) = _split_host_port(pattern), _split_host_port(what)
    if port and port != at:
        return False
    if name.startswith("*."):
        return host.endswith(name[1:]) and len(host) > len(name) - 1
    return name in ("*", host)


def _split_host_port(text: str) -> tuple[str, str]:
    """Return the name as a resolver receives it, without a trailing dot, and the port, empty if there is none."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host.lower(), rest.removeprefix(":")
    host, _, port = text.partition(":") if text.count(":") == 1 else (text, "", "")
    return hostnames.parse_host_name(host).ascii.removesuffix("."), port


def is_wildcard_match(pattern: str, text: str) -> bool:
    """Return True if the text fits the pattern, in which each `*` matches any number of characters."""
    head, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(head):
        return False
    at = len(head)
    for piece in rest[:-1]:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - at >= len(rest[-1]) and text.endswith(rest[-1])


def is_words_match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if the words fit the pattern; `**` matches any number of words, `*` in a word any characters."""
    at = here = 0
    back: tuple[int, int] | None = None
    while here < len(words):
        if at < len(pattern) and pattern[at] == "**":
            back, at = (at + 1, here), at + 1
        elif at < len(pattern) and is_wildcard_match(pattern[at], words[here]):
            at, here = at + 1, here + 1
        elif back is None:
            return False
        else:
            # The last `**` takes one word more; those before it need never take another.
            back = (back[0], back[1] + 1)
            at, here = back
    return all(word == "**" for word in pattern[at:])


# --- paths ---------------------------------------------------------------------------------------------------------------------------------

PathNames = tuple[str, ...]


@dataclass(slots=True)
class RulePaths:
    """The patterns of rules as the names of real folders, found once for each set of roots."""

    _known: dict[tuple[str, tuple[PurePath, ...], PurePath, str], tuple[PathNames, ...]] = field(
        default_factory=dict[tuple[str, tuple[PurePath, ...], PurePath, str], tuple[PathNames, ...]]
    )

    def below(self, path: str, patterns: Sequence[str], judging: EvaluationContext) -> bool:
        """Return True if a real path fits one of the patterns, or there are no patterns."""
        names = _split_names(path, judging.platform)
        return not patterns or any(is_words_match(each, names) for p in patterns for each in self._real(p, judging))

    def meets(self, touch: Access, patterns: Sequence[str], judging: EvaluationContext) -> bool:
        """Return True if `below` is True for the path, or a folder to be deleted contains what a pattern refers to."""
        if self.below(touch.what, patterns, judging):
            return True
        names = _split_names(touch.what, judging.platform)
        return touch.kind == "delete" and any(
            _fixed_names(each)[: len(names)] == names for p in patterns for each in self._real(p, judging)
        )

    def _real(self, pattern: str, judging: EvaluationContext) -> tuple[PathNames, ...]:
        key = (pattern, judging.workspace, judging.home, judging.platform)
        if key not in self._known:
            self._known[key] = tuple(_resolve_pattern(pattern, judging))
        return self._known[key]


def is_path_below(path: str, folder: str, platform: str) -> bool:
    """Return True if a real path equals the folder or is inside it; both are compared literally."""
    names = _split_names(folder, platform)
    return _split_names(path, platform)[: len(names)] == names


def _resolve_pattern(pattern: str, judging: EvaluationContext) -> Iterable[PathNames]:
    """Yield the pattern for each root it may start at, both as written and with symlinks resolved."""
    for root in judging.workspace:
        written = _split_names(pattern, judging.platform, fold=False)
        fixed = _fixed_names(written)
        rest = written[len(fixed) :] or ("**",)
        lead = "/" if pattern.startswith("/") else ""
        start = path_resolution.resolve_path(
            lead + "/".join(fixed) or ".", cwd=root, home=judging.home, platform=judging.platform
        )
        for place in dict.fromkeys((start.real, start.written)):
            yield (*_split_names(place, judging.platform), *_fold_names(rest, judging.platform))


def _fixed_names(names: PathNames) -> PathNames:
    """Return the names before the first one that contains a `*`."""
    return names[: next((at for at, name in enumerate(names) if "*" in name), len(names))]


def _split_names(path: str, platform: str, *, fold: bool = True) -> PathNames:
    text = path.replace("\\", "/") if platform == "win32" else path
    names = tuple(name for name in text.split("/") if name not in ("", "."))
    return _fold_names(names, platform) if fold else names


def _fold_names(names: PathNames, platform: str) -> PathNames:
    return tuple(name.casefold() for name in names) if platform in ("win32", "darwin") else names


# --- together ------------------------------------------------------------------------------------------------------------------------------


def build_rule(settings: RuleSettings) -> Rule:
    """Return the rule that a configuration entry defines."""
    return Rule(
        settings.tool,
        settings.decision,
        command=settings.command or (),
        argv=settings.argv or (),
        options=settings.options or (),
        paths=settings.paths or (),
        access=settings.access or (),
        hosts=settings.hosts or (),
        layers=settings.layer or (),
        server=settings.server,
        kinds=settings.kind or (),
        effects=settings.effects or (),
        read_only=settings.read_only,
        modes=settings.modes or (),
        interactive=settings.interactive,
        route=settings.route,
        reason=settings.reason,
        name=settings.name,
        priority=settings.priority,
        lifts=settings.lifts,
        tier=settings.tier,
        tightening=settings.tightening,
        origin=RuleOrigin(settings.source, settings.index),
    )


class RuleSet:
    """All rules that hold, the highest rank first; made once for each configuration."""

    def __init__(self, given: Iterable[Rule] = ()) -> None:
        self.ranked = tuple(sorted(given, key=lambda rule: rule.rank, reverse=True))
        self.places = RulePaths()
        # Tools of toolsets come and go.
        self._of: WeakKeyDictionary[Tool, tuple[Rule, ...]] = WeakKeyDictionary()

    def of(self, tool: Tool) -> tuple[Rule, ...]:
        """Return the rules that may match calls of a tool."""
        if not self.ranked:
            return ()
        known = self._of.get(tool)
        if known is None:
            known = self._of[tool] = tuple(rule for rule in self.ranked if rule.of_tool(tool).yes)
        return known
