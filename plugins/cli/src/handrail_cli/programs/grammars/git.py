"""Checks of git's operands, in addition to its options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch
from handrail_cli.programs.grammars.common_checks import SECRET_SETTING

LIST_OPTIONS = (
    "-l",
    "--list",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "--verify",
    "-n",
)
FILE_LIKE_NAME = re.compile(r"\.|.*[/*?]|(\.{0,2}/|:).*|(?!v?\d)(.*\.[A-Za-z]\w{0,4})", re.DOTALL)
# Settings that change how git looks and works, but not what it runs or whom it asks.
TAME_SETTINGS = re.compile(
    r"(?i)user\.(name|email|signingkey|useconfigonly)|core\.(autocrlf|eol|filemode|ignorecase|quotepath|safecrlf|abbrev|bare|compression|longpaths|symlinks"
    r"|precomposeunicode|preloadindex|untrackedcache|whitespace|commentchar)|init\.defaultbranch|(pull|push|fetch|merge|rebase|commit|tag|log|status|diff|color|advice|column"
    r"|branch|rerere|gc|grep|blame|format|index|pack|stash|apply|am|help|versionsort|feature)\.(?!.*(cmd|command|driver|tool|external|textconv|program|guitool|template|followredirects|negotiationalgorithm$))[\w.-]+"
)
PUBLIC_SETTING = re.compile(r"(?i)remote\.[^.]+\.(push)?url|user\.signingkey|branch\..*")
READING_OPTIONS = (
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "-l",
    "--list",
    "--get-color",
    "--get-colorbool",
)


def check_branch(taking: ArgumentMatch) -> None:
    """Check `git branch NAME` and `git tag NAME`, which create one; with a listing option, names are patterns."""
    if taking.operands and not taking.given(*LIST_OPTIONS):
        taking.worsen("effect")
    if taking.given("-d", "--delete") and taking.given("-r", "--remotes"):
        why = "git deletes a branch of a remote, whatever else holds its commits"
        taking.worsen("dangerous", code="destructive", why=why, at=taking.operands[0] if taking.operands else 0)


def check_checkout(taking: ArgumentMatch) -> None:
    """Check `git checkout`.

    `checkout [COMMIT] FILE` overwrites files; `checkout NAME` changes the branch, or overwrites the file of that name.
    """
    words = taking.words
    texts = [word.text for word in words]
    files = "--" in texts and texts.index("--") < len(words) - 1
    making = taking.given("-b", "-B", "--orphan", "-t", "--track", "--detach")
    first = words[taking.operands[0]] if taking.operands else None
    like_a_file = first is not None and (first.glob or FILE_LIKE_NAME.fullmatch(first.text or "") is not None)
    if files or (not making and (len(taking.operands) > 1 or like_a_file)):
        taking.worsen(
            "dangerous", code="destructive", why="git checkout throws away changes in files", at=len(words) - 1
        )
    elif first is not None and not making:
        taking.name("branch", taking.operands[0])


def check_restore(taking: ArgumentMatch) -> None:
    """Check `git restore`: with `--staged` alone, only the index changes."""
    if taking.given("--staged", "-S") and not taking.given("--worktree", "-W"):
        taking.kind = "effect"
        taking.reasons.clear()


def check_push(taking: ArgumentMatch) -> None:
    """Check `git push`.

    `+BRANCH` and `:BRANCH` replace or delete a branch. An address that is not a remote of the repository sends its data
    to an unknown recipient.
    """
    for at in taking.operands[1:]:
        if (taking.words[at].text or "+").startswith(("+", ":")):
            taking.worsen(
                "dangerous", code="destructive", why="git push replaces or deletes a branch of the remote", at=at
            )
    for at, text in _iter_remotes(taking):
        if re.search(r"[:/\\]", text or ":"):
            taking.worsen("dangerous", code="sends_data", why="git push sends the repository to an address", at=at)
    check_address(taking)


def _iter_remotes(taking: ArgumentMatch) -> Iterator[tuple[int, str | None]]:
    """Yield the words that say which repository is the other side: the first operand, and the values of options that take its place."""
    for at in taking.operands[:1]:
        yield at, taking.words[at].text
    yield from _iter_address_options(taking)


def _iter_address_options(taking: ArgumentMatch) -> Iterator[tuple[int, str | None]]:
    """Yield the values of options that are addresses (`--repo=ADDRESS`)."""
    for option, at, value in taking.options:
        if option.role == "url":
            yield at, value if value is not None else taking.words[at].text


def check_fetch(taking: ArgumentMatch) -> None:
    """Check `git fetch`.

    `SOURCE:BRANCH` writes branches and tags of the repository itself, which loses commits if it may replace or delete
    them.
    """
    check_address(taking)
    prunes = taking.given("-p", "--prune")
    forces = taking.given("-f", "--force")
    if taking.given("-P", "--prune-tags") or (forces and taking.given("-t", "--tags")):
        taking.worsen("dangerous", code="destructive", why="git replaces or deletes tags", at=0)
    if taking.given("--stdin", "--refmap"):
        taking.doubt(0)
    named = [taking.words[at].text or "" for at in taking.operands]
    for at, text in zip(taking.operands, named, strict=True):
        forced = forces or prunes or text.startswith("+")
        tags = text == "tag" and at != taking.operands[0]
        _, colon, into = text.partition(":")
        if (tags and forces) or (colon and at != taking.operands[0] and _may_lose_commits(into, forced=forced)):
            taking.worsen(
                "dangerous", code="destructive", why="git replaces or deletes branches or tags of the repository", at=at
            )


def _may_lose_commits(into: str, *, forced: bool) -> bool:
    """Return True if fetching into these refs may lose commits.

    Git always replaces refs that are neither branches nor tags.
    """
    if not into or re.match(r"refs/remotes/[^*]", into):
        return False
    return forced or re.match(r"refs/(?!heads/|tags/)", into) is not None


def check_address(taking: ArgumentMatch) -> None:
    """Check addresses: `ext::sh -c …` is an address that runs a command."""
    operands = [(at, taking.words[at].text) for at in taking.operands]
    for at, text in (*operands, *_iter_address_options(taking)):
        if text is None:
            taking.doubt(at)
        elif re.match(r"[\w+-]+::", text) or text.startswith("-"):
            taking.worsen("dangerous", code="runs_program", why=f"the address {text!r} runs a program", at=at)


def check_config(taking: ArgumentMatch) -> None:
    """Check `git config`: one name shows a setting, two words set it.

    Many settings name programs, and some hold credentials.
    """
    words = taking.words
    names = [words[at].text for at in taking.operands]
    if names and names[0] is not None and SECRET_SETTING.search(names[0]) and not PUBLIC_SETTING.fullmatch(names[0]):
        taking.worsen(
            "dangerous", code="secret", why=f"the setting {names[0]!r} may hold a credential", at=taking.operands[0]
        )
    changing = taking.given("--add", "--replace-all", "--unset", "--unset-all", "--rename-section", "--remove-section")
    sets = " set" in taking.path or "section" in taking.path or "unset" in taking.path
    if not (
        changing or sets or (len(names) > 1 and not taking.given(*READING_OPTIONS) and taking.path == "git config")
    ):
        return
    taking.worsen("effect")
    if taking.given("--global", "--system"):
        taking.worsen("dangerous", code="settings", why="it changes settings of git outside the repository", at=0)
    if not names or names[0] is None or not TAME_SETTINGS.fullmatch(names[0]):
        taking.worsen(
            "dangerous", code="settings", why="it changes a setting of git that may name a program to run", at=0
        )
