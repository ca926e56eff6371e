"""SKILL.md is read strictly, and what is wrong with one is said with its line."""

from __future__ import annotations

import pytest

from handrail_skills.skill_document import SkillError, parse_document

HEAD = "---\nname: tidy\ndescription: Tidies up.\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{HEAD}---\nBody\n".encode(), id="plain"),
        pytest.param(f"{HEAD}---\nBody\n".encode("utf-8-sig"), id="byte-order-mark"),
        pytest.param(f"{HEAD}---\nBody\n".replace("\n", "\r\n").encode(), id="crlf"),
        pytest.param(f"{HEAD}---  \nBody\n".encode(), id="spaces-after-the-fence"),
        pytest.param(
            b"---\nname: tidy\ndescription: 'Tidies up.'\nlicense: a --- b\n---\nBody\n", id="fence-in-a-value"
        ),
        pytest.param(f"{HEAD}compatibility: |\n  one\n   ---\n  two\n---\nBody\n".encode(), id="fence-in-a-block"),
    ],
)
def test_what_the_specification_allows_is_read(text: bytes) -> None:
    document = parse_document(text)
    assert (document.frontmatter.name, document.frontmatter.description) == ("tidy", "Tidies up.")
    assert document.body == "Body\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: x\n", "does not begin with a line '---'"),
        (HEAD, "no second line"),
        (f"{HEAD} ---\nBody", "no second line"),
        ("---\n- a\n---\n", "not a mapping"),
        ("---\nname: tidy\n---\n", "description"),
        ("---\nname: Tidy\ndescription: x\n---\n", "'Tidy' is no name"),
        ("---\nname: a--b\ndescription: x\n---\n", "no name"),
        (f"---\nname: {'a' * 65}\ndescription: x\n---\n", "no name"),
        ("---\nname: 12\ndescription: x\n---\n", "name"),
        (f"---\nname: a\ndescription: {'x' * 1025}\n---\n", "description"),
        (f"{HEAD}compatibility: {'x' * 501}\n---\n", "compatibility"),
        (f"{HEAD}name: other\n---\n", "line 4: the key 'name' is there twice"),
        (f"{HEAD}metadata: &m {{a: b}}\nlicense: *m\n---\n", "line 4: aliases are not taken"),
        (f"{HEAD}metadata: [1]\n---\n", "metadata"),
        ("---\nname: [\n---\n", "line"),
        (f"{HEAD}metadata: !!python/object:os.system x\n---\n", "line"),
    ],
)
def test_what_is_wrong_is_told(text: str, told: str) -> None:
    with pytest.raises(SkillError) as refused:
        parse_document(text.encode())
    assert told in str(refused.value)


def test_bytes_that_are_no_text_are_told() -> None:
    with pytest.raises(SkillError, match="not UTF-8"):
        parse_document(b"---\n\xff")


@pytest.mark.parametrize("given", ["Read Grep", "[Read, Grep]"])
def test_allowed_tools_are_a_text_or_a_list(given: str) -> None:
    document = parse_document(f"{HEAD}allowed-tools: {given}\n---\n".encode())
    assert document.frontmatter.allowed_tools == ("Read", "Grep")
    assert document.remarks == ("allowed-tools allows nothing here: policy does",)


@pytest.mark.parametrize("given", ["a b a", "[a, b]"])
def test_tools_of_the_session_are_a_text_or_a_list(given: str) -> None:
    document = parse_document(f"{HEAD}metadata: {{adk_additional_tools: {given}, version: 1.0}}\n---\n".encode())
    assert document.frontmatter.tools == ("a", "b")
    assert document.frontmatter.metadata["version"] == "1.0"


def test_an_unknown_key_is_remarked() -> None:
    assert (
        "'licence' is no key of the specification; did you mean 'license'?"
        in parse_document(f"{HEAD}licence: MIT\n---\n".encode()).remarks
    )
