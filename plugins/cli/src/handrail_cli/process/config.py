"""`[plugins.cli]`: what is answered, how much is kept, and what a command may use."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

# Shorter ones stand at the end of too much.
SHORTEST_PROMPT = 3


class AnswerRule(BaseModel):
    """Rule that answers one prompt: for which command, the text of the prompt and the answer to type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="The first words of a simple command in the call's command line."),
    ]
    prompt: Annotated[
        str,
        Field(min_length=SHORTEST_PROMPT, description="Text that stands in the last line of what the command wrote."),
    ]
    answer: Annotated[str, Field(max_length=1_000, description="What is typed, without the line end.")]

    @field_validator("prompt")
    @classmethod
    def no_secret(cls, prompt: str) -> str:
        """Reject prompts for secrets: every command could read a password in a configuration file."""
        from handrail_cli.process.prompts import names_secret

        if names_secret(prompt):
            raise ValueError(f"{prompt!r} asks for a password, which no rule may answer")
        return prompt

    @field_validator("answer")
    @classmethod
    def one_line(cls, answer: str) -> str:
        """Reject an answer of several lines: the second would answer a prompt that has not been seen."""
        if any(letter < " " or letter == "\x7f" for letter in answer):
            raise ValueError("an answer is one line of text")
        return answer


class HostLimits(BaseModel):
    """Limits of one command on the host; an unset one is not limited. Sandboxes have their own limits, `[sandbox]`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory: Annotated[int | None, Field(gt=0, description="Megabytes of address space of each process.")] = None
    cpu_seconds: Annotated[int | None, Field(gt=0, description="Seconds of processor time of each process.")] = None
    processes: Annotated[int | None, Field(gt=0, description="Processes of this user at a time; root is not held.")] = (
        None
    )
    file_size: Annotated[int | None, Field(gt=0, description="Megabytes of a file that a command writes.")] = None


class CliConfig(BaseModel):
    """Prompts that are answered, the size of kept output, and limits of commands on the host."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answers: Annotated[tuple[AnswerRule, ...], Field(description="The only prompts that are ever answered.")] = ()
    output_limit: Annotated[int, Field(ge=1, description="Megabytes of one stream that its artifact keeps.")] = 256
    limits: HostLimits = HostLimits()
