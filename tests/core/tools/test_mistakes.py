"""What a person or a model reads when a value does not fit."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handrail import validation_messages


class Door(BaseModel):
    model_config = ConfigDict(extra="forbid")
    wide: int = 1
    names: tuple[str, ...] = ()


class House(BaseModel):
    model_config = ConfigDict(extra="forbid")
    doors: list[Door]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "house lacks the key 'doors'"),
        ({"dors": []}, "unknown key 'house.dors'; did you mean 'doors'?"),
        ({"doors": [{"wid": 2}]}, "unknown key 'house.doors[0].wid'; did you mean 'wide'?"),
        ({"doors": [{}, {"wide": "x"}]}, "house.doors[1].wide is 'x'; it should be a valid integer"),
        ({"doors": [{"names": "x"}]}, "house.doors[0].names is 'x'; it should be a list"),
    ],
)
def test_a_mistake_names_key_value_and_what_is_accepted(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        House.model_validate(given)
    assert validation_messages.describe_error(
        validation_messages.select_error(refused.value), House, table="house"
    ).startswith(told)


class Server(BaseModel):
    key: str | None = Field(default=None, pattern="^secret:[a-z]+$")


def test_a_key_that_stands_where_its_name_belongs_is_not_shown() -> None:
    with pytest.raises(ValidationError) as refused:
        Server.model_validate({"key": "sk-0123456789"})
    told = validation_messages.describe_error(validation_messages.select_error(refused.value), Server, table="server")
    assert "sk-0123456789" not in told
    assert told.startswith("server.key is not the name of a secret")
    assert "'secret:NAME'" in told
