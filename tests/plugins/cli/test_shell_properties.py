"""What must hold for any way of writing a command: harm never becomes silent, reading stays allowed, and data is data."""

from __future__ import annotations

import base64
import shlex
import time
from dataclasses import replace

import pytest
from hypothesis import example, given, strategies as st
from tests.plugins.cli.bash_cases import BARE, WORK

from handrail import Decision, EvaluationContext
from handrail.api.verdict import SandboxOffer
from handrail_cli.shell.bash.line_parser import parse_line, parse_with_grammar
from handrail_cli.shell.bash.simple_line import parse_simple_line
from handrail_cli.shell.verdict import judge_line

# With a sandbox that withholds nothing, so that nothing is asked about for want of it.
JUDGING = replace(BARE, sandbox=SandboxOffer("a sandbox", network=True, writable=(str(WORK),)))


def decision(command: str, judging: EvaluationContext = JUDGING) -> Decision | None:
    return judge_line(command, judging).suggestion


HARMFUL = [
    "rm -rf ../other",
    "rm -rf .",
    "git reset --hard",
    "git push --force origin main",
    "cat .env",
    "cat ~/.ssh/id_rsa",
    "touch ~/.bashrc",
    "cp x .git/hooks/post-commit",
    "mv ~/Documents /tmp/x",
    "/tmp/tool --fast",
    "find . -delete",
    "sort -o ../x y",
    "chmod -R u+w ..",
]
AROUND = [
    "{}", "({})", "{{ {}; }}", "true && {}", "false || {}", "ls; {}", "ls\n{}", "{} &", "{} | cat", "cat a | {}", "! {}", "echo $({})", "echo `{}`",
    'echo "$({})"', "cat <({})", "if true; then {}; fi", "if {}; then ls; fi", "while {}; do ls; done", "until true; do {}; done",
    "for i in 1 2; do {}; done", "case x in x) {};; esac", "f() {{ {}; }}; f", "f() {{ {}; }}; ls", "time {}", "command {}", "exec {}", "x=$({})",
    "{} > /dev/null 2>&1", "> out {}", "2>&1 {}", "A=1 {}", "[[ -n $({}) ]]", "echo $(( $({}) + 1 ))", "cat << X\n$({})\nX", "echo ${{X:-$({})}}",
    "coproc {{ {}; }}", "{} # nothing", "# nothing\n{}", "echo a \\\n; {}", "ls -{{a,l}}; {}", "echo 'x' \"y\" z; {}", "true;true;true;{};true",
]  # fmt: skip
CODE = [
    "bash -c {}",
    "sh -c {}",
    "bash -ec {}",
    "eval {}",
    "trap {} EXIT",
    "bash <<< {}",
    "bash <<'E'\n{raw}\nE",
    "echo {} | sh",
    "sh -c {} x y",
]


def respelled(word: str, choices: list[int]) -> str:
    """The same word for bash, with each letter quoted in one of several ways."""
    if word.startswith("~"):
        return word
    ways = (str, "\\{}".format, "'{}'".format, '"{}"'.format, lambda c: f"$'\\x{ord(c):02x}'")
    return "".join(ways[choice](letter) for letter, choice in zip(word, choices, strict=False))


def wrapped(command: str, form: str) -> str:
    """A command in one of these forms; backquotes nest only where the inner ones are escaped."""
    if "`" in form:
        command = command.replace("\\", "\\\\").replace("`", "\\`")
    return form.format(command)


@given(st.sampled_from(HARMFUL), st.lists(st.sampled_from(AROUND), max_size=3))
@example("git reset --hard", ["echo $(( $({}) + 1 ))"])
def test_harm_is_never_silent_whatever_stands_around_it(harm: str, around: list[str]) -> None:
    command = harm
    for form in around:
        command = wrapped(command, form)
    assert decision(command) is not Decision.ALLOW, command


@given(st.sampled_from(HARMFUL), st.lists(st.sampled_from(CODE), min_size=1, max_size=3), st.sampled_from(AROUND))
def test_harm_is_never_silent_as_code(harm: str, codes: list[str], around: str) -> None:
    command = harm
    for form in codes:
        command = form.format(shlex.quote(command), raw=command)
    assert decision(command) is not Decision.ALLOW, command
    if "\n" not in command:
        assert decision(around.format(command)) is not Decision.ALLOW, around.format(command)


@given(st.sampled_from(HARMFUL), st.data())
def test_harm_is_never_silent_however_it_is_quoted(harm: str, data: st.DataObject) -> None:
    words = [
        respelled(word, data.draw(st.lists(st.integers(0, 4), min_size=len(word), max_size=len(word))))
        for word in harm.split()
    ]
    assert decision(" ".join(words)) is not Decision.ALLOW, words


@given(st.sampled_from(HARMFUL), st.sampled_from(["base64 -d", "xxd -r -p", "rev", "tr a-z a-z", "cat"]))
def test_harm_is_never_silent_behind_a_decoder(harm: str, decoder: str) -> None:
    data = harm.encode()
    text = {"xxd -r -p": data.hex(), "rev": harm[::-1], "base64 -d": base64.b64encode(data).decode()}.get(decoder, harm)
    for run in ("{} | sh", 'bash -c "$({})"', 'eval "$({})"', "$({})", "source <({})", "{} | xargs -I% sh -c %"):
        assert decision(run.format(f"echo {shlex.quote(text)} | {decoder}")) is not Decision.ALLOW, run


@given(st.sampled_from(HARMFUL), st.sampled_from(["a", "x", "target", "F"]))
def test_harm_is_never_silent_through_variables(harm: str, name: str) -> None:
    words = harm.split()
    for at in range(len(words)):
        for use in (f"${name}", f"${{{name}}}", f'"${name}"', f"${{{name}:-{words[at]}}}"):
            line = " ".join([*words[:at], use, *words[at + 1 :]])
            for setting in (f"{name}={shlex.quote(words[at])}", f"{name}='x'; {name}={shlex.quote(words[at])}"):
                command = f"{setting}; {line}"
                if "~" not in words[at]:
                    assert decision(command) is not Decision.ALLOW, command


READING = [
    "ls -la src",
    "cat README.md",
    "grep -rn 'to do' src",
    "wc -l a.txt b.txt",
    "head -n 5 notes.txt",
    "git status",
    "git log --oneline -n 3",
    "git diff HEAD~1 -- src",
    "find . -name '*.py'",
    "sed -n '1,5p' a.txt",
    "stat a.txt",
    "du -sh src",
    "sort a.txt | uniq -c",
    "echo hello",
]
HARMLESS = [
    "{}", "( {} )", "{{ {}; }}", "{} | cat", "{} | head -n 3", "{} > /dev/null", "{} 2>/dev/null", "{} 2>&1", "true && {}", "{} || true",
    "echo on; {}", "pwd\n{}", "if true; then {}; fi", "for i in 1 2; do {}; done", "while true; do {}; break; done", "x=1; {}", "LC_ALL=C {}",
    "{} # and so on",
    "# first\n{}", "! {}", "echo \"$( {} )\"", "bash -c {quoted}", "eval {quoted}", "cd src; {}", "[ -d src ] && {}", "f() {{ {}; }}; f",
    "set -e; {}",
    "case a in a) {};; esac", "x=src; ls $x; {}", "{} < /dev/null", "trap 'echo bye' EXIT; {}", "TZ=UTC date; {}",
]  # fmt: skip


@given(st.sampled_from(READING), st.lists(st.sampled_from(HARMLESS), max_size=2))
def test_reading_stays_allowed_however_it_is_decorated(reading: str, forms: list[str]) -> None:
    command = reading
    for form in forms:
        # A comment and what it swallows, and shells in shells, are other questions.
        # These stand before a simple command, and the parser knows no `)` of a pattern inside quotes.
        simple = form in ("! {}", "LC_ALL=C {}")
        if (simple and command != reading) or ("case" in command and form.startswith("echo")):
            continue
        # Where a folder is changed over and over, nobody knows where it ends.
        if "cd src" in command and ("for " in form or "while " in form):
            continue
        # Which function is called is only certain where it is certainly defined.
        if "f()" in command and form != "{}":
            continue
        if ("#" in command and "#" in form) or ("#" in command and "\n" not in form and form != "{}"):
            continue
        command = form.format(command, quoted=shlex.quote(command))
    found = judge_line(command, JUDGING)
    assert found.suggestion is Decision.ALLOW, (command, found.reasons)


DATA = [
    "echo '{}'", "printf '%s' '{}'", "grep -n '{}' notes.txt", "git commit -m '{}'", "git log --grep '{}'", "ls # {}", "cat <<'END'\n{}\nEND",
    "cat > notes.md <<'END'\n{}\nEND", "wc -c <<< '{}'", "tee log.txt <<< '{}'", "x='{}'; echo \"$x\"", "sed -n '/{}/p' a.txt", "rm build; echo '{}'",
    "rm -rf ../x; echo '{}'", "git tag -a v1 -m '{}'",
]  # fmt: skip
WORDS = st.sampled_from(
    [
        "rm -rf x",
        "sudo",
        "curl",
        "| sh",
        "&& make",
        "; ls",
        "> out",
        "$(id)",
        "`id`",
        "eval",
        "mkfs.ext4",
        "git reset --hard",
        "kill -9 1",
        "{a,b}",
        "*",
    ]
)


@given(
    st.sampled_from(DATA),
    st.lists(WORDS | st.text(alphabet='abc XYZ 019 .,:;!?&|()<>{}$`"#=+-', max_size=8), max_size=5),
)
def test_text_in_the_place_of_data_changes_no_verdict(form: str, words: list[str]) -> None:
    # What begins with a dash is an option to some of them.
    text = " ".join(words).replace("/", "").replace("'", "").lstrip("- ")
    if "sed" in form and set(text) & set("[]\\*.^$(){}+?|"):
        return
    with_text, without = judge_line(form.format(text), JUDGING), judge_line(form.format("text"), JUDGING)
    assert (with_text.suggestion, with_text.floor, with_text.route, with_text.catastrophic) == (
        without.suggestion,
        without.floor,
        without.route,
        without.catastrophic,
    ), form.format(text)


FRAGMENTS = st.sampled_from(
    ["ls", "-la", "a.b", "'x y'", '"p q"', "|", "&&", "||", ";", " ", "  ", "*", "?.c", "=", "a=b", "echo", "--x=y", "if", "!", "then", "x", "/",
     "..", "''", "&", ":", "5", "fi", "do", "in", "for", "[", "test", "e,f", "-a=b", "b=", "git", "cd", "printf", "eval", "read"]
)  # fmt: skip


@given(st.lists(FRAGMENTS | st.just(" "), min_size=1, max_size=12).map("".join))
def test_plain_lines_are_what_the_parser_takes_them_for(text: str) -> None:
    simple = parse_simple_line(text)
    if simple is None:
        return
    whole = parse_with_grammar(text)
    if whole.opaque or any(command.words[0].text == "-" for command in simple.commands):
        return
    assert simple.commands == whole.commands
    assert set(simple.pipelines) == set(whole.pipelines)


@given(st.text(alphabet="ab $(){}[]|&;<>'\"`\\\n*~!#=-/.?:@%+,x1", max_size=80))
def test_an_analysis_that_understands_all_of_a_line_has_a_command_or_a_variable_of_it(text: str) -> None:
    found = parse_line(text)
    if not found.opaque and not found.commands and not found.assigned:
        assert decision(text) is Decision.CONFIRM


REPEATED = [
    "ls;", "echo $(ls) ", "cat a|", "for i in 1 2 3; do ls; done;", "f(){ ls; };f;", "x=$x$x;", "\"$a\" ", "$(", "<(ls) ", "{a,b}", "[[ -f a ]] && ",
    "while ls; do ls; done;", "${a#*b} ", "sudo ", "env a=b ", "xargs ", "bash -c 'ls';", "find . -exec ls {} \\; ;", "parallel ls ::: a b c;",
    "echo a b c | xargs rm;", "case a in a) ls;; esac;", "a=1;for x in $a; do cat $x; done;", "[", "}", "! ", "~/a ", "\\\n", "timeout 5 ",
]  # fmt: skip


@pytest.mark.parametrize("unit", REPEATED)
def test_ten_thousand_letters_of_anything_are_judged_in_time(unit: str) -> None:
    text = (unit * 10_000)[:10_000]
    judge_line("ls", JUDGING)
    fastest = min(_seconds(text) for _ in range(3))
    # The aim is 50 ms of the processor; one that is shared is slower, and given more.
    assert fastest < 0.25


def _seconds(text: str) -> float:
    began = time.thread_time()
    assert decision(text, replace(JUDGING, sandbox=None)) is not None
    return time.thread_time() - began
