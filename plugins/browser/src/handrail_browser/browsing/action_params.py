"""Params of each action of `execute_browser`, one model per action.

The model that calls the tool sees them described in prose: as schemas they would cost it three times as much, and an
error about params that do not fit states what does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from handrail.json_types import is_mapping

LimitedText = Annotated[str, Field(max_length=200_000)]
# Fields by which an element is named, and those that nearly all actions take: told once.
ELEMENT_FIELDS, COMMON_FIELDS = ("ref", "selector", "name"), ("timeout", "tab_id")
LoadState = Literal["load", "dom", "network"]


class ActionParams(BaseModel):
    """Params of every action.

    `acts` is True for an action that changes a page. `needs_url` says if the action takes an address: True requires,
    None allows and False rejects one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    acts: ClassVar[bool] = False
    needs_url: ClassVar[bool | None] = False

    timeout: float = Field(default=10, gt=0, le=120)


class TabParams(ActionParams):
    """In one tab."""

    tab_id: str | None = None


class ElementParams(TabParams):
    """On one element, named in one way."""

    ref: str | None = None
    selector: str | None = None
    name: str | None = None
    optional: ClassVar[bool] = False

    @model_validator(mode="after")
    def _one(self) -> ElementParams:
        given = [each for each in ("ref", "selector", "name") if getattr(self, each) is not None]
        if len(given) > 1 or not (given or self.optional):
            raise ValueError("name the element by one of ref, selector, name")
        return self


class NavigateParams(TabParams):
    """Go to `url`."""

    needs_url = True
    until: LoadState = "load"
    username: str | None = None
    password: str | None = None


class TravelParams(TabParams):
    """Go through the history, or load again."""


class OpenTabParams(ActionParams):
    """Open a tab, at `url` if given."""

    needs_url = None


class CloseTabParams(TabParams):
    """Close a tab."""


class ListTabsParams(ActionParams):
    """Params for listing the open tabs."""


class ClickParams(ElementParams):
    """Click an element."""

    acts = True
    button: Literal["left", "right", "middle"] = "left"
    clicks: int = Field(default=1, ge=1, le=3)


class HoverParams(ElementParams):
    """Put the pointer over an element."""

    acts = True


class FillParams(ElementParams):
    """Replace a field's text."""

    acts = True
    text: LimitedText
    submit: bool = False


class PressParams(ElementParams):
    """Press a key, on an element or on what has the focus."""

    acts = True
    optional = True
    key: str = Field(max_length=60)


class SelectParams(ElementParams):
    """Choose from a list."""

    acts = True
    values: list[str] = Field(min_length=1, max_length=100)


class UploadParams(ElementParams):
    """Give files to a file field, or to the chooser that is open."""

    acts = True
    optional = True
    paths: list[str] = Field(min_length=1, max_length=20)


class DownloadParams(ElementParams):
    """Save what a link or `url` gives."""

    acts = True
    optional = True
    needs_url = None
    path: str


class DialogParams(TabParams):
    """Answer a dialog, or close a file chooser."""

    acts = True
    accept: bool = True
    text: Annotated[str | None, Field(max_length=20_000)] = None


class ScrollParams(ElementParams):
    """Scroll the page, or the box that an element is in."""

    optional = True
    direction: Literal["down", "up", "left", "right", "top", "bottom", "into"] = "down"
    amount: float = Field(default=0.8, gt=0, le=100)


class WaitParams(TabParams):
    """Wait until something is so."""

    text: Annotated[str | None, Field(max_length=2_000)] = None
    selector: str | None = None
    gone: bool = False
    url_part: str | None = None
    until: LoadState | None = None

    @model_validator(mode="after")
    def _something(self) -> WaitParams:
        if self.text is None and self.selector is None and self.url_part is None and self.until is None:
            raise ValueError("say what to wait for: text, selector, url_part or until")
        return self


class SnapshotParams(TabParams):
    """List what can be used on the page."""

    filter: Literal["interactive", "all"] = "interactive"
    selector: str | None = None
    diff: bool = False
    limit: int = Field(default=200, ge=1, le=2_000)
    offset: int = Field(default=0, ge=0)


class ExtractTextParams(TabParams):
    """Read the page."""

    selector: str | None = None


class ScreenshotParams(ElementParams):
    """Params for taking a screenshot of the window, the full page or an element."""

    optional = True
    full: bool = False


class ConnectCdpParams(ActionParams):
    """Params for using a browser on this machine that the user started for debugging, at `url`."""

    needs_url = True


ACTIONS: Mapping[str, type[ActionParams]] = {
    "navigate": NavigateParams, "click": ClickParams, "fill": FillParams, "press": PressParams,
    "extract_text": ExtractTextParams, "snapshot": SnapshotParams,
    "open_tab": OpenTabParams, "close_tab": CloseTabParams, "list_tabs": ListTabsParams, "select": SelectParams,
    "wait": WaitParams, "screenshot": ScreenshotParams,
    "back": TravelParams, "forward": TravelParams, "reload": TravelParams, "scroll": ScrollParams,
    "hover": HoverParams, "dialog": DialogParams, "upload": UploadParams,
    "download": DownloadParams, "connect_cdp": ConnectCdpParams,
}  # fmt: skip
ActionName = Literal[
    "navigate", "click", "fill", "press", "extract_text", "snapshot", "open_tab", "close_tab", "list_tabs", "select", "wait", "screenshot",
    "back", "forward", "reload", "scroll", "hover", "dialog", "upload", "download", "connect_cdp",
]  # fmt: skip


def _describe_action_params(schema: dict[str, Any]) -> None:
    """Replace the schema with a description of the params of each action. A choice lists its values."""
    told = (f"{name} {takes}" for name, model in ACTIONS.items() if (takes := ", ".join(_describe_fields(model))))
    schema.clear()
    schema |= {
        "type": "object",
        "description": f"{'; '.join(told)}. An element is ref, selector or name. All: tab_id, timeout (s).",
    }


def _describe_fields(model: type[ActionParams]) -> Iterator[str]:
    if issubclass(model, ElementParams):
        yield "element?" if model.optional else "element"
    for name, field in model.model_fields.items():
        if name in COMMON_FIELDS or (name in ELEMENT_FIELDS and issubclass(model, ElementParams)):
            continue
        parts = [field.annotation, *get_args(field.annotation)]
        choices = [each for part in parts for each in get_args(part) if isinstance(each, str)]
        shown = f"{name}={'|'.join(choices)}" if choices else name
        yield shown if field.is_required() else f"{shown}?"


class BrowserParams(BaseModel):
    """One action. `given` is its checked `params`; `goes_to`, `acts_on`, `reads` and `writes` are what is judged, found in them."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    action: ActionName = Field(description="What to do.")
    url: str | None = Field(default=None, description="Where to go.")
    params: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] = Field(
        default_factory=dict[str, Any], json_schema_extra=_describe_action_params
    )
    goes_to: SkipJsonSchema[tuple[str, ...]] = Field(default=(), init=False)
    acts_on: SkipJsonSchema[tuple[str, ...]] = Field(default=(), init=False)
    reads: SkipJsonSchema[tuple[str, ...]] = Field(default=(), init=False)
    writes: SkipJsonSchema[tuple[str, ...]] = Field(default=(), init=False)
    _given: ActionParams | None = None

    @property
    def given(self) -> ActionParams:
        assert self._given is not None
        return self._given

    @model_validator(mode="before")
    @classmethod
    def _judged(cls, data: Any) -> Any:
        """Reject the fields that the policy evaluates.

        They are computed here only, so no caller can supply them in place of the arguments that they describe.
        """
        if not is_mapping(data):
            return data
        told = dict(data)
        for name in ("goes_to", "acts_on", "reads", "writes"):
            if name in told:
                raise ValueError(f"there is no such argument: {name}")
        if told.get("params") is None:
            told.pop("params", None)
        return told

    @model_validator(mode="after")
    def _checked(self) -> BrowserParams:
        model = ACTIONS[self.action]
        try:
            given = model.model_validate(self.params)
        except ValidationError as exc:
            raise ValueError("; ".join(_describe_error(error, model) for error in exc.errors())) from None
        if model.needs_url is True and not self.url:
            raise ValueError(f"{self.action} needs url")
        if model.needs_url is False and self.url:
            raise ValueError(f"{self.action} takes no url; navigate goes to one")
        if isinstance(given, DownloadParams) and (self.url is None) == all(
            each is None for each in (given.ref, given.selector, given.name)
        ):
            raise ValueError("download takes either url or an element")
        set_field = object.__setattr__
        self._given = given
        if self.url and self.action != "connect_cdp":
            set_field(self, "goes_to", (self.url,))
        if given.acts:
            set_field(self, "acts_on", (self.action,))
        if isinstance(given, UploadParams):
            set_field(self, "reads", tuple(given.paths))
        if isinstance(given, DownloadParams):
            set_field(self, "writes", (given.path,))
        return self


def _describe_error(error: Any, model: type[ActionParams]) -> str:
    place = ".".join(str(each) for each in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"params.{place}: there is no such argument; it takes {', '.join(model.model_fields)}"
    return f"params.{place}: {error['msg']}" if place else error["msg"].removeprefix("Value error, ")
