"""The settings of one session, as validated values. Where they come from is `config`'s business."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from handrail.judging import Decision, Mode

# In `sandbox.use`: none of them.
NO_SANDBOXES = "none"

Profile = Literal["files", "shell", "browser", "desktop", "all"]


class Section(BaseModel):
    """A table of the configuration: unknown keys are errors, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolSettings(Section):
    """`[tools]`"""

    profile: Profile = Field(default="desktop", description="What is declared to the model.")
    disabled: tuple[str, ...] = Field(default=(), description="Tools that are neither listed nor callable.")


class RuleSettings(Section):
    """One `[[policy.rules]]`"""

    tool: str = Field(description="A tool's name; `*` stands for any letters.")
    decision: Decision = Field(description="allow, confirm or deny.")
    command: tuple[str, ...] = Field(
        default=(), description="The first words of a simple command, for tools that run commands."
    )
    name: str = Field(default="", description="What the rule is called in verdicts.")
    lifts: tuple[str, ...] = Field(
        default=(), description="Floors of evaluators that this rule goes below, by their rule's name."
    )
    tier: Literal["project", "user", "admin"] = Field(
        default="user", exclude=True, description="Set by where the rule stands."
    )


class PolicySettings(Section):
    """`[policy]`"""

    rules: tuple[RuleSettings, ...] = ()


class SecuritySettings(Section):
    """`[security]`"""

    trust: tuple[str, ...] = Field(
        default=("cli",), description="Plugins whose evaluators may suggest to allow; all others can only tighten."
    )


class ConfirmationSettings(Section):
    """`[confirmation]`"""

    expires: float = Field(default=600, gt=0, le=86_400, description="Seconds after which a question is a no.")


class NetworkSettings(Section):
    """`[network]`"""

    allow_private: tuple[str, ...] = Field(
        default=(),
        description="Hosts (`*.lan` for all below), addresses and networks of your own that may be reached though they are not public.",
    )


class SandboxSettings(Section):
    """`[sandbox]`"""

    use: tuple[str, ...] = Field(
        default=(), description='Sandboxes in the order they are tried; unset: all there are; ["none"]: no sandbox.'
    )
    network: bool = Field(default=False, description="Whether what runs in the sandbox has the network.")
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


class AuditSettings(Section):
    """`[audit]`"""

    enabled: bool = Field(default=True, description="Write a file of every call, chained by hashes.")


class OutputSettings(Section):
    """`[output]`"""

    max_bytes: Annotated[int, Field(ge=1_024, le=10_000_000)] = Field(
        default=51_200,
        description="Bytes of one text of a result that are shown; of a longer one its head and its tail.",
    )


class PluginSettings(BaseModel):
    """`[plugins]`: `require`, `disabled`, and a table for each plugin, checked against the plugin's own model."""

    model_config = ConfigDict(extra="allow", frozen=True)

    require: tuple[str, ...] = Field(default=(), description="Plugins that must load, or nothing runs.")
    disabled: tuple[str, ...] = Field(default=(), description="Plugins that are not loaded.")

    def table(self, plugin: str) -> dict[str, Any]:
        """The plugin's own table, empty when there is none."""
        found = (self.model_extra or {}).get(plugin, {})
        return dict(cast("dict[str, Any]", found)) if isinstance(found, dict) else {"": found}


class Settings(Section):
    """Everything that can be configured."""

    backend: str | None = Field(
        default=None, description="The vision backend, as `handrail plugins` prints it; unset: the best that is here."
    )
    backend_fallback: tuple[str, ...] = Field(
        default=(), description="Backends tried in order when the active one is missing or fails."
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
    audit: AuditSettings = AuditSettings()
    output: OutputSettings = OutputSettings()
