"""The settings of one session, as validated values. Where they come from is `config`'s business."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from handrail.api.tool import Tool, ToolLayer
from handrail.api.verdict import Mode
from handrail.config.base_model import ConfigSection, NonEmptyStr, NonEmptyStrings, OneOrMany
from handrail.config.rule_settings import RuleSettings, ToolKind
from handrail.json_types import is_object

__all__ = ["ServerSettings", "Settings"]

# In `sandbox.use`: none of them.
NO_SANDBOXES = "none"

ToolProfile = Literal["files", "shell", "browser", "desktop", "all"]


class ToolSettings(ConfigSection):
    """`[tools]`"""

    profile: ToolProfile = Field(default="desktop", description="What is declared to the model.")
    disabled: tuple[str, ...] = Field(default=(), description="Tools that are neither listed nor callable.")

    def disables(self, tool: Tool) -> bool:
        """Return True if a tool is disabled, under any of its names."""
        return not set(tool.names).isdisjoint(self.disabled)


class PolicySettings(ConfigSection):
    """`[policy]`"""

    rules: tuple[RuleSettings, ...] = ()
    grant_days: Annotated[int, Field(ge=0, le=3650)] = Field(
        default=90, description="Days after which a yes for always is asked again; 0: never."
    )


class SecuritySettings(ConfigSection):
    """`[security]`"""

    trust: tuple[str, ...] = Field(
        default=("cli",), description="Plugins whose evaluators may suggest to allow; all others can only tighten."
    )


class ConfirmationSettings(ConfigSection):
    """`[confirmation]`"""

    expires: float = Field(default=600, gt=0, le=86_400, description="Seconds after which a question is a no.")


class NetworkSettings(ConfigSection):
    """`[network]`"""

    allow_private: tuple[str, ...] = Field(
        default=(),
        description="Hosts (`*.lan` for all below), addresses and networks of your own that may be reached though they are not public.",
    )
    proxy: str | None = Field(
        default=None,
        pattern=r"^http://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}/?$",
        description="The proxy, as http://host:port, through which public hosts are reached. Names are still looked up here.",
    )


def _validate_host(text: str) -> str:
    from handrail.net.allowed_hosts import HostEntry

    HostEntry.parse(text)
    return text


class SandboxSettings(ConfigSection):
    """`[sandbox]`"""

    use: tuple[str, ...] = Field(
        default=(), description='Sandboxes in the order they are tried; unset: all there are; ["none"]: no sandbox.'
    )
    network: bool = Field(default=False, description="Whether what runs in the sandbox has the network.")
    hosts: tuple[Annotated[str, AfterValidator(_validate_host)], ...] = Field(
        default=(),
        description="Hosts that commands which need the network may reach in the sandbox without a question: name, name:port or `*.name`.",
    )
    writable: tuple[str, ...] = Field(
        default=(), description="Folders beside the workspace that may be written in the sandbox."
    )
    readable: tuple[str, ...] = Field(
        default=(), description="Files and folders that can be read in the sandbox beside the system's programs."
    )
    memory: int = Field(default=4096, ge=64, description="Megabytes that one sandboxed command may use.")
    processes: int = Field(default=512, ge=8, description="Processes that one sandboxed command may have at a time.")
    cpu_seconds: int | None = Field(
        default=None, ge=1, description="Seconds of CPU that each process of a sandboxed command may use."
    )
    file_size: int = Field(default=4096, ge=1, description="Megabytes that one file written in the sandbox may have.")


class SkillSettings(ConfigSection):
    """Skills that an agent may load."""

    enabled: tuple[NonEmptyStr, ...] = Field(
        default=("advanced-workflows",),
        description="Skills that an agent may load. One with code that no plugin brought needs `handrail skills enable`.",
    )


class TelemetrySettings(ConfigSection):
    """`[telemetry]`: spans of OpenTelemetry."""

    enabled: bool | None = Field(
        default=None, description="Whether spans are made; unset: where the program has set up a tracer provider."
    )
    arguments: bool = Field(
        default=False, description="Whether spans hold arguments and results, with secrets taken out."
    )


class SecretSettings(ConfigSection):
    """`[secrets]`: where `secret:NAME` in arguments is looked up."""

    variables: dict[NonEmptyStr, NonEmptyStr] = Field(
        default_factory=dict[str, str],
        description="The variable of the environment that holds a secret, by the secret's name. HANDRAIL_SECRET_NAME needs no entry.",
    )
    sites: dict[NonEmptyStr, tuple[NonEmptyStr, ...]] = Field(
        default_factory=dict[str, tuple[str, ...]],
        description="The only sites that a secret may be given to without approval, by the secret's name, each with all below it.",
    )
    keyring: str = Field(
        default="handrail",
        description="The service in the system's keyring that holds secrets; empty: it is not asked.",
    )


class AuditSettings(ConfigSection):
    """`[audit]`"""

    enabled: bool = Field(default=True, description="Write a file of every call, chained by hashes.")
    max_bytes: Annotated[int, Field(ge=65_536)] = Field(
        default=16_777_216, description="Bytes after which a session's record goes on in another file."
    )
    keep_days: Annotated[int, Field(ge=1)] = Field(default=90, description="Days that files of past sessions are kept.")
    keep_bytes: Annotated[int, Field(ge=1_000_000)] = Field(
        default=1_000_000_000, description="Bytes that all of them may have; the oldest go first."
    )


class ArtifactSettings(ConfigSection):
    """`[artifacts]`"""

    keep_days: Annotated[int, Field(ge=0)] = Field(
        default=7,
        description="Days that long results and pictures of past sessions are kept; 0: until the next session.",
    )
    keep_bytes: Annotated[int, Field(ge=0)] = Field(
        default=2_000_000_000, description="Bytes that all of them may have; the oldest go first."
    )


class UndoSettings(ConfigSection):
    """`[undo]`: what is kept of files before calls change them."""

    enabled: bool = Field(default=True, description="Keep what calls change in files, so that it can be undone.")
    max_bytes: Annotated[int, Field(ge=1_000_000)] = Field(
        default=1_000_000_000, description="Bytes that all of it may have; the oldest goes first."
    )
    max_file_bytes: Annotated[int, Field(ge=0)] = Field(
        default=67_108_864, description="Bytes of one file; a larger one is not kept, and the result says so."
    )
    max_files: Annotated[int, Field(ge=1)] = Field(
        default=50_000,
        description="Files and folders of one workspace; of a larger one only what a call names is kept.",
    )
    keep_days: Annotated[int, Field(ge=1)] = Field(default=14, description="Days after which a call cannot be undone.")
    leave_out: tuple[NonEmptyStr, ...] = Field(
        default=(),
        description="Files and folders that are not kept: a name, or a path from the workspace on; `*` stands for any letters.",
    )


class ServeSettings(ConfigSection):
    """`[serve]`"""

    approvals: Literal["client", "local"] = Field(
        default="client",
        description="Who is asked: the person behind the client, through it; or one at this machine, by `handrail approvals`.",
    )
    tokens: NonEmptyStrings = Field(
        default=(),
        description="Names of environment variables with the bearer tokens of `serve --http`; unset: one token is made at the start.",
    )
    idle: float = Field(
        default=1_800, gt=0, le=86_400, description="Seconds without a request after which a session over HTTP ends."
    )


class OutputSettings(ConfigSection):
    """`[output]`"""

    max_bytes: Annotated[int, Field(ge=1_024, le=10_000_000)] = Field(
        default=51_200,
        description="Bytes of one text of a result that are shown; of a longer one its head and its tail.",
    )


class LimitSettings(ConfigSection):
    """`[limits]`: what one session may use. Unset: no limit."""

    seconds: float | None = Field(
        default=None, gt=0, description="Seconds that a session may take; then what runs is stopped."
    )
    calls: int | None = Field(default=None, ge=1, description="Calls that a host may make; nested ones do not count.")
    output_tokens: int | None = Field(
        default=None, ge=1, description="Tokens (characters / 4) of all results together, pictures left out."
    )
    failures: int = Field(
        default=10,
        ge=0,
        le=1_000,
        description="A call that has failed so often, with nothing changed in between, is not run again; 0: no limit.",
    )
    repeats: int = Field(
        default=0,
        ge=0,
        le=1_000,
        description="A call that was made so often among the last calls (twice that many) is not run again; 0: no limit.",
    )


class ObserverSettings(ConfigSection):
    """One `[[observers]]`: a command that looks at calls (all matchers that are given must fit)."""

    command: Annotated[NonEmptyStrings, Field(min_length=1)] = Field(
        description="The program and its arguments; no shell reads them."
    )
    name: str = Field(
        default="", pattern=r"^[A-Za-z0-9_.-]{0,63}$", description="What verdicts call it; unset: the program's name."
    )
    tools: OneOrMany[NonEmptyStr] = Field(
        default=("*",), description="Tools by name, or several; `*` stands for any letters."
    )
    layer: OneOrMany[ToolLayer] | None = Field(default=None, description="The tool's layer, or several.")
    kind: OneOrMany[ToolKind] | None = Field(default=None, description="The tool's kind, or several.")
    when: OneOrMany[Literal["before", "after"]] = Field(
        default=("before",), description="When it looks: before calls are judged, after they ran, or both."
    )
    timeout: float = Field(default=10.0, gt=0, le=600, description="Seconds that it may take for each call.")
    security: bool = Field(default=False, description="Whether its failure blocks the call, or withholds the result.")
    cwd: str | None = Field(default=None, description="The folder it runs in; unset: `/`, where no agent writes.")

    @property
    def called(self) -> str:
        return self.name or PurePath(self.command[0]).name


class ServerSettings(ConfigSection):
    """`[mcp.servers.NAME]`: another server whose tools are offered, started by `command` or reached at `url`."""

    command: NonEmptyStrings = Field(default=(), description="The program that is the server, and its arguments.")
    env: dict[NonEmptyStr, str] = Field(
        default_factory=dict[str, str],
        description="Variables for it, beside those of Handrail that hold no credential; `secret:NAME` stands for a secret.",
    )
    cwd: str | None = Field(default=None, description="The folder it runs in; unset: `/`, where no agent writes.")
    url: str | None = Field(default=None, pattern=r"^https?://[^\s]+$", description="The server's address.")
    headers: dict[NonEmptyStr, str] = Field(
        default_factory=dict[str, str], description="Headers of each request; `secret:NAME` stands for a secret."
    )
    transport: Literal["stdio", "http", "sse"] | None = Field(
        default=None, description="How it is spoken to; unset: stdio for a command, http and then sse for a url."
    )
    include: tuple[NonEmptyStr, ...] | None = Field(
        default=None, description="Its tools that are offered, `*` for any letters; unset: all."
    )
    exclude: tuple[NonEmptyStr, ...] = Field(
        default=(), description="Its tools that are not offered, `*` for any letters."
    )
    read_only: tuple[NonEmptyStr, ...] = Field(
        default=(), description="Its tools that change nothing, as you know; `*` stands for any letters."
    )
    trust_hints: bool = Field(
        default=False, description="Whether the server is believed when it says that a tool changes nothing."
    )
    roots: bool = Field(default=False, description="Whether the server is told the folders of the workspace.")
    timeout: float = Field(default=60, gt=0, le=86_400, description="Seconds that one call may take.")
    start_timeout: float = Field(default=30, gt=0, le=600, description="Seconds that starting or connecting may take.")
    enabled: bool = Field(default=True, description="Whether it is used at all.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        for key, problem in _find_server_contradictions(self):
            raise PydanticCustomError("rule", "{problem}", {"problem": problem, "key": key})
        return self


def _find_server_contradictions(server: ServerSettings) -> Iterator[tuple[str, str]]:
    if not server.command and server.url is None:
        yield "command", "a server needs a command or a url"
    if server.command and server.url is not None:
        yield "url", "a server has a command or a url, not both"
    for key in ("env", "cwd"):
        if getattr(server, key) and not server.command:
            yield key, "only a server that is started by a command has it"
    if server.headers and server.url is None:
        yield "headers", "only a server with a url has them"
    if server.transport is not None and (server.transport == "stdio") is not bool(server.command):
        yield "transport", "stdio goes with a command, http and sse go with a url"


class McpSettings(ConfigSection):
    """`[mcp]`: other servers whose tools are offered."""

    servers: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")], ServerSettings] = (
        Field(default_factory=dict[str, ServerSettings], description="A table for each server.")
    )
    start_wait: float = Field(
        default=5, ge=0, le=120, description="Seconds that the first list of tools waits for servers that are starting."
    )


class PluginSettings(BaseModel):
    """`[plugins]`: `require`, `disabled`, and a table for each plugin, checked against the plugin's own model."""

    model_config = ConfigDict(extra="allow", frozen=True)

    require: tuple[str, ...] = Field(default=(), description="Plugins that must load, or nothing runs.")
    disabled: tuple[str, ...] = Field(default=(), description="Plugins that are not loaded.")

    def table(self, plugin: str) -> dict[str, Any]:
        """Return the plugin's own table, or an empty one if it has none."""
        found = (self.model_extra or {}).get(plugin, {})
        return dict(found) if is_object(found) else {"": found}


class Settings(ConfigSection):
    """Everything that can be configured."""

    backend: str | None = Field(
        default=None, description="The vision backend, as `handrail plugins` prints it; unset: the best that is here."
    )
    backend_fallback: tuple[str, ...] = Field(
        default=(), description="Backends tried in order when the active one is missing or fails."
    )
    backend_merge: tuple[str, ...] = Field(
        default=(), description="Backends whose elements are added to those of the one that answers, such as ocr."
    )
    mode: Mode = Field(
        default=Mode.DEFAULT, description="How calls are treated that are neither clearly allowed nor refused."
    )
    desktop: Annotated[str, Field(min_length=1)] = Field(
        default="current", description="current, private, or the name of a started one."
    )
    workspace: tuple[str, ...] = Field(default=(".",), description="Roots that file tools may write.")
    tools: ToolSettings = ToolSettings()
    policy: PolicySettings = PolicySettings()
    plugins: PluginSettings = PluginSettings()
    backends: dict[str, dict[str, Any]] = Field(
        default_factory=dict[str, dict[str, Any]], description="A table for each backend."
    )
    sandbox: SandboxSettings = SandboxSettings()
    sandboxes: dict[str, dict[str, Any]] = Field(
        default_factory=dict[str, dict[str, Any]], description="A table for each sandbox."
    )
    security: SecuritySettings = SecuritySettings()
    confirmation: ConfirmationSettings = ConfirmationSettings()
    network: NetworkSettings = NetworkSettings()
    secrets: SecretSettings = SecretSettings()
    skills: SkillSettings = SkillSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    observers: tuple[ObserverSettings, ...] = Field(default=(), description="Commands that look at calls.")
    audit: AuditSettings = AuditSettings()
    artifacts: ArtifactSettings = ArtifactSettings()
    undo: UndoSettings = UndoSettings()
    output: OutputSettings = OutputSettings()
    limits: LimitSettings = LimitSettings()
    mcp: McpSettings = McpSettings()
    serve: ServeSettings = ServeSettings()
