"""Docker: a container for each command, where an engine answers. Slower to start than bubblewrap, and its programs are those of an image."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import anyio
from pydantic import BaseModel, ConfigDict, Field

from handrail import Bounds, Confined, NoSandbox, Sandbox
from handrail.api.sandbox import ALL_ASPECTS
from handrail.sandbox.scratch_folder import ScratchFolder
from handrail.workers.host_programs import START_FOLDER, find_own_programs

INSTALL_HINT = "install Docker or Podman's `docker`, and start its engine"
ANSWER_S = 5.0


class DockerSettings(BaseModel):
    """`[sandboxes.docker]`"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    image: str = Field(
        default="debian:12.11-slim",
        min_length=1,
        description="The image, with its tag or, better, its digest (`name@sha256:…`). It must be there: nothing is pulled.",
    )
    user: str = Field(
        default="65534:65534",
        description='Who the command is inside: nobody, so that it writes only what all may write; "own" for the person\'s own ids.',
    )
    memory: int = Field(default=256, ge=16, description="Megabytes; the smaller of this and sandbox.memory counts.")
    cpus: float = Field(default=0.5, gt=0, description="Processors.")
    processes: int = Field(default=100, ge=8, description="The smaller of this and sandbox.processes counts.")
    temporary: int = Field(
        default=64, ge=1, description="Megabytes of /tmp, which is kept in memory and lasts for one command."
    )


class DockerSandbox(Sandbox):
    """Confines with a container that has no network, no powers and a read-only root."""

    name = "docker"
    confines = ALL_ASPECTS
    Config = DockerSettings
    # The program on PATH that speaks to the engine.
    client: ClassVar[str] = "docker"

    @classmethod
    def missing(cls) -> str | None:
        """Return why the sandbox cannot be used here, or None.

        It requires a client, and a system whose paths the engine can mount.
        """
        if sys.platform == "win32":
            return "paths of Windows are not mounted by it; use WSL"
        programs = find_own_programs()
        return None if programs.find(cls.client) else f"{programs.why_missing(cls.client)}; {INSTALL_HINT}"

    async def check(self) -> None:
        """Check that an engine responds and has the image."""
        await anyio.to_thread.run_sync(self._ask)

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        """Return the command line of the client. Killing it does not stop the container: `ended` removes that."""
        if bounds.network or bounds.hosts:
            raise NoSandbox("this sandbox never gives the network", hint="set sandbox.network = false, or use another")
        if not any(cwd.is_relative_to(path) for path in (*bounds.writable, *bounds.readable)):
            raise NoSandbox(f"the folder {str(cwd)!r} is not shown in the sandbox, so nothing was run")
        name = f"handrail-{secrets.token_hex(8)}"
        inside = {**environment, "HOME": "/tmp", "TMPDIR": "/tmp", "PATH": os.defpath}
        words = (self._program, *self.options(bounds, cwd, name, inside), self._settings.image, *argv)
        return Confined(
            words, self.programs().environment, ended=lambda: self._remove(name, bounds.temporary / f".{name}")
        )

    def options(self, bounds: Bounds, cwd: Path, name: str, environment: Mapping[str, str]) -> Iterator[str]:
        """Yield the client's arguments before the image."""
        settings, limits = self._settings, bounds.limits
        memory = min(settings.memory * 2**20, limits.memory or settings.memory * 2**20)
        processes = min(settings.processes, limits.processes or settings.processes)
        user = f"{os.getuid()}:{os.getgid()}" if settings.user == "own" else settings.user
        yield from ("run", "--rm", "--interactive", "--init", "--pull", "never", "--name", name)
        # Written once there is a container; without it nothing ran.
        yield from ("--cidfile", str(bounds.temporary / f".{name}"))
        yield from ("--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        yield from ("--user", user, "--ipc", "private", "--hostname", "sandbox", "--log-driver", "none")
        yield from ("--memory", str(memory), "--memory-swap", str(memory), "--cpus", f"{settings.cpus:g}")
        yield from ("--pids-limit", str(processes), "--ulimit", "core=0")
        if limits.file_size is not None:
            yield from ("--ulimit", f"fsize={limits.file_size}")
        if limits.cpu_seconds is not None:
            yield from ("--ulimit", f"cpu={limits.cpu_seconds}")
        yield from ("--tmpfs", f"/tmp:rw,nosuid,nodev,size={settings.temporary}m")
        for path in bounds.readable:
            yield from _create_mount(path, path, "readonly")
        for path in (*bounds.writable, *bounds.anchored):
            yield from _create_mount(path, path)
        for path in bounds.kept:
            yield from _create_mount(path, path, "readonly")
        for path in bounds.masked:
            if path.is_dir():
                yield from ("--tmpfs", f"{path}:ro,size=4k,mode=000")
            else:
                yield from _create_mount(self._hidden, path, "readonly")
        for variable, value in environment.items():
            yield from ("--env", f"{variable}={value}")
        yield from ("--workdir", str(cwd), "--entrypoint", "")

    async def close(self) -> None:
        """Remove the substitute file."""
        if "_scratch" in self.__dict__:
            await anyio.to_thread.run_sync(self._scratch.close)

    @cached_property
    def _scratch(self) -> ScratchFolder:
        return ScratchFolder()

    @cached_property
    def _hidden(self) -> Path:
        """Inaccessible file that hides others: opening it fails, whereas an empty file would look like a change."""
        file = self._scratch.temporary / "hidden"
        file.touch(mode=0o000)
        return file

    @property
    def _program(self) -> str:
        programs = self.programs()
        found = programs.find(self.client)
        if found is None:
            raise NoSandbox(programs.why_missing(self.client), hint=INSTALL_HINT)
        return found

    @property
    def _settings(self) -> DockerSettings:
        assert isinstance(self.config, DockerSettings)
        return self.config

    def _ask(self) -> None:
        image = self._settings.image
        for words, wrong, cure in (
            (("version", "--format", "{{.Server.Version}}"), "no engine answers", INSTALL_HINT),
            (("image", "inspect", image), f"the image {image!r} is not there", f"docker pull {image}"),
        ):
            try:
                done = subprocess.run(
                    [self._program, *words],
                    cwd=START_FOLDER,
                    capture_output=True,
                    timeout=ANSWER_S,
                    check=False,
                    stdin=subprocess.DEVNULL,
                    env=self.programs().environment,
                )
            except (OSError, subprocess.TimeoutExpired) as exc:
                raise NoSandbox(wrong, hint=cure) from exc
            if done.returncode != 0:
                raise NoSandbox(wrong, hint=cure)

    def _remove(self, name: str, began: Path) -> str | None:
        """Remove the container if it is still there, since its client may have been killed; why there was none."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired, NoSandbox):
            subprocess.run(
                [self._program, "rm", "--force", name],
                cwd=START_FOLDER,
                capture_output=True,
                timeout=ANSWER_S,
                check=False,
                stdin=subprocess.DEVNULL,
                env=self.programs().environment,
            )
        try:
            began.unlink()
        except OSError:
            return "the engine made no container"
        return None


def _create_mount(source: Path, target: Path, *options: str) -> tuple[str, str]:
    """Return the arguments of one mount; a comma in a path, which would begin an option, raises `NoSandbox`."""
    if "," in f"{source}{target}":
        raise NoSandbox(f"the path {str(target)!r} holds a comma and cannot be mounted")
    return ("--mount", ",".join(("type=bind", f"source={source}", f"target={target}", *options)))
