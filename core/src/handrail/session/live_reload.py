"""Takes over what changes in the configuration and the grants while sessions are open."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from handrail.config.loader import LoadedConfig
from handrail.errors import HandrailError
from handrail.fs.change_watch import FileStamp, read_file_stamps
from handrail.session.installed_plugins import build_rules, check_tables

if TYPE_CHECKING:
    from handrail.session.runtime import Runtime

log = logging.getLogger(__name__)


class ConfigWatcher:
    """Made when the files were read: a change from then on is seen by `look`. Without `reload` the configuration stays."""

    def __init__(self, runtime: Runtime, reload: Callable[[], LoadedConfig] | None) -> None:
        self._runtime = runtime
        self._reload = reload
        self._seen = read_file_stamps(runtime.config.files)
        self._seen_grants = read_file_stamps([runtime.book.file])

    def look(self) -> None:
        """Take over what has changed since the last look."""
        runtime = self._runtime
        if (
            self._reload is not None
            and (now := read_file_stamps(runtime.config.files)) != self._seen
            and not self._forged(now)
        ):
            self._seen = now
            self._take_over(self._reload)
        if (grants := read_file_stamps([runtime.book.file])) != self._seen_grants:
            self._seen_grants = grants
            runtime.read_grants()

    def _forged(self, now: Sequence[FileStamp]) -> bool:
        """Return True if a configuration file may have been created by a sandboxed command.

        When the command is over, its file is quarantined.
        """
        appeared = any(was is None and found is not None for was, found in zip(self._seen, now, strict=True))
        return appeared and any(session.confining for session in self._runtime.sessions)

    def _take_over(self, reload: Callable[[], LoadedConfig]) -> None:
        """Take over changed configuration files; a broken one is reported and the old settings stay."""
        try:
            config = reload()
            with config.locating():
                check_tables(self._runtime, config.settings)
            changed = build_rules(self._runtime, config.settings)
            self._runtime.choose_backend(config.settings.backend)
        except HandrailError as exc:
            log.error("the configuration was not taken over: %s", exc)
            return
        for sentence in config.ignored:
            if sentence not in self._runtime.config.ignored:
                log.warning("%s", sentence)
        self._runtime.config = config
        self._runtime.rules = changed
        self._runtime.undo.use(config.settings.undo)
        for session in self._runtime.sessions:
            try:
                session.apply(config.settings)
            except HandrailError as exc:
                log.error("the configuration was not taken over: %s", exc)
