"""The tool `ask_user`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from handrail import AnswerKind, Question, ToolContext, tool

OptionText = Annotated[str, Field(min_length=1, max_length=200)]


class QuestionInput(BaseModel):
    """Question to the user."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    question: str = Field(min_length=1, max_length=2_000, description="The question.")
    kind: Literal["text", "choice", "yes_no"] = Field("text", description="Answer type.")
    options: list[OptionText] = Field(default=[], max_length=6, description="2-6; other answers are allowed.")
    several: bool = Field(False, description="Allow more than one.")

    @model_validator(mode="after")
    def _options_of_a_choice(self) -> Self:
        if self.kind == "choice" and len({" ".join(option.split()).casefold() for option in self.options}) < 2:
            raise ValueError("a choice has at least two different options")
        if len(set(self.options)) < len(self.options):
            raise ValueError("each option stands once")
        if self.kind != "choice" and (self.options or self.several):
            raise ValueError(f'only a choice has options, and this is kind {self.kind!r}; add "kind": "choice"')
        return self

    def asked(self) -> Question:
        """Convert to the question type of core."""
        options = tuple(self.options)
        return Question(question=self.question, kind=AnswerKind(self.kind), options=options, several=self.several)


# A person takes their time; the question itself expires.
@tool(layer="session", title="Ask the user", timeout=None, trusted=True)
async def ask_user(
    questions: Annotated[list[QuestionInput], Field(min_length=1, max_length=4, description="Asked together.")],
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Ask the person what only they know, not for permission. Returns answers in order, null where one was left open."""
    replies = await context.ask([each.asked() for each in questions])
    pairs = zip(questions, replies, strict=True)
    return {"answers": [{"question": put.question, "answer": _to_plain_reply(reply)} for put, reply in pairs]}


def _to_plain_reply(reply: str | bool | Sequence[str] | None) -> Any:
    return reply if isinstance(reply, str | bool | None) else list(reply)
