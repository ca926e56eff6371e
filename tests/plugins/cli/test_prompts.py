"""What counts as a question at the end of an output, and what never does."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handrail_cli.process.config import AnswerRule
from handrail_cli.process.prompts import PROMPT_PATTERNS, find_prompt

# As the programs print them; the last line of what stood on the stream.
PROMPTS = [
    ("password", "[sudo] password for ada: "),
    ("password", "Password: "),
    ("password", "Enter passphrase for key '/home/ada/.ssh/id_ed25519': "),
    ("password", "Password for 'https://ada@git.example.org': "),
    ("password", "New password: "),
    ("password", "Verification code: "),
    (
        "question",
        "After this operation, 4,096 B of additional disk space will be used.\nDo you want to continue? [Y/n] ",
    ),
    ("question", "Do you want to continue? [Y/n] Abort.\n"),
    ("question", "Proceed (Y/n)? "),
    ("question", "Continue [y/N]: "),
    ("question", "Really? (yes/no)\n"),
    ("question", "Are you sure you want to continue connecting (yes/no/[fingerprint])? "),
    ("question", "Ok to proceed? (y) "),
    ("question", "Is this OK? (yes) "),
    ("question", "Trust this certificate? [no]:  "),
    ("question", "replace a.txt? [y]es, [n]o, [A]ll, [N]one, [r]ename: "),
    ("question", "*** sshd_config (Y/I/N/O/D/Z) [default=N] ? "),
    ("question", "rm: remove write-protected regular file 'x'? "),
    ("question", "cp: overwrite 'x'? "),
    ("question", "Only 'yes' will be accepted to confirm.\n\n  Type 'yes' to confirm: "),
    ("key", "Press any key to continue . . . "),
    ("key", "Press [ENTER] to continue or Ctrl-c to cancel.\n"),
    ("pager", "--More--(12%)"),
    ("pager", ":"),
    ("pager", "(END)"),
    ("pager", " Manual page bash(1) line 1 (press h for help or q to quit)"),
    ("pager", "lines 1-23"),
    ("editor", "hello\n~\n~\n~"),
    ("editor", '~\n"notes.txt" 3L, 20B'),
    ("editor", '~\n"notes.txt" [New]'),
    ("editor", "-- INSERT --"),
    ("editor", "^X Exit      ^R Read File"),
    ("shell", "Type help for more.\n>>> "),
    ("shell", "mysql> "),
    ("shell", "app=# "),
    ("shell", "(Pdb) "),
    ("input", "1) a\n2) b\n#? "),
    ("input", "Username for 'http://127.0.0.1': "),
    ("input", "package name: (work) "),
    ("input", "Name? "),
]


@pytest.mark.parametrize(("kind", "output"), PROMPTS)
def test_a_prompt_at_the_end_is_known(kind: str, output: str) -> None:
    found = find_prompt(output.encode(), stream="stderr")
    assert found is not None
    assert (found.kind, found.stream) == (kind, "stderr")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\n",
        "done\n",
        "Do you want to continue? [Y/n] y\nInstalling\n",
        "Password: set\n",
        "warnings: 3\n",
        "[y/N] was asked before\nall done\n",
        "http://localhost:8000/",
        "12:30",
        "100%",
        "a.txt:\n",
        "It listens on port 8000.\n",
    ],
)
def test_what_only_looks_like_one_is_none(output: str) -> None:
    assert find_prompt(output.encode(), stream="stdout") is None


def test_colours_around_a_prompt_change_nothing() -> None:
    found = find_prompt(b"\x1b[1m?\x1b[0m \x1b[32mContinue\x1b[0m [y/N] \x1b[0m", stream="stdout")
    assert found is not None
    assert found.text == "? Continue [y/N]"


def test_there_are_at_least_fourteen_patterns() -> None:
    assert len(PROMPT_PATTERNS) >= 14


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("[sudo] password for", "x"),
        ("Enter passphrase", "x"),
        ("Verification code:", "1"),
        ("Is this OK?", "yes\nrm x"),
    ],
)
def test_no_rule_answers_a_password_or_with_two_lines(prompt: str, answer: str) -> None:
    with pytest.raises(ValidationError):
        AnswerRule(command=("sudo",), prompt=prompt, answer=answer)
