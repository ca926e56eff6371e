"""Secrets by name: `secret:NAME` in a call's arguments represents a value that only the handler receives.

It is substituted after the verdict, and redacted in results, the audit log, events and reports. Names are looked up in
the environment (`HANDRAIL_SECRET_NAME`, or the variable given in `[secrets.variables]`) and then in the system's
keyring.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, AnyStr, TypeVar, cast
from urllib.parse import quote

import anyio.to_thread

from handrail.api.call import Invocation
from handrail.api.secret_refs import MAX_SCAN_DEPTH, SECRET_REF, has_secret_ref, normalize_secret_name
from handrail.api.tool import Input, Run, Send
from handrail.errors import InvalidArguments, NotFound
from handrail.json_types import is_mapping, is_sequence
from handrail.redaction import REDACTED_TEXT, STAND_IN, is_secret_name

if TYPE_CHECKING:
    from handrail.api.events import EventBus
    from handrail.artifacts.store import ArtifactStore
    from handrail.config.settings import SecretSettings

T = TypeVar("T")

VARIABLE_PREFIX = "HANDRAIL_SECRET_"
# What means itself in every shell, in and out of quotes.
SHELL_SAFE = re.compile(r"[A-Za-z0-9_./+=:@,-]+")
# The beginning of an address, up to where its path begins.
URL_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\\]*", re.IGNORECASE)
# Shorter values turn up in any text by chance.
MIN_SECRET_CHARS = 6


class SessionSecrets:
    """The secrets of one session: found by name, and known by value once a call has been given them."""

    __slots__ = ("_ambient", "_artifacts", "_bus", "_environment", "_held", "_settings", "forms")

    def __init__(
        self, environment: Mapping[str, str], settings: SecretSettings, bus: EventBus, artifacts: ArtifactStore
    ) -> None:
        self._environment = environment
        self._bus = bus
        self._artifacts = artifacts
        self._settings = settings
        self._ambient: tuple[str, ...] | None = None
        # What is held back of a running call's output: it may be the beginning of a secret.
        self._held: dict[tuple[str, str], str] = {}
        # The values that calls have been given, in every form they are written in, longest first. Empty: nothing has to be taken out.
        self.forms: tuple[str, ...] = ()

    # Putting in

    async def find(self, name: str) -> str | None:
        """Return the value of a secret, or None for an unknown name."""
        variable = VARIABLE_PREFIX + normalize_secret_name(name)
        for candidate in (variable, self._settings.variables.get(name)):
            if candidate and (value := self._environment.get(candidate)):
                return value
        if not self._settings.keyring or importlib.util.find_spec("keyring") is None:
            return None
        return await anyio.to_thread.run_sync(_read_keyring, self._settings.keyring, name)

    async def take(self, name: str) -> str:
        """Return the value of a secret, redacted in all output from now on. Raises `NotFound` for an unknown name."""
        value = await self.find(name)
        if value is None:
            raise NotFound(
                f"there is no secret {name!r}",
                hint=f"a person sets it in the environment, as {VARIABLE_PREFIX}…, or in the keyring",
            )
        self._know(name, value)
        return value

    async def filled(self, invocation: Invocation) -> Invocation:
        """Substitute values for secret names in a call's arguments; return the same call if it names none.

        A name that is an entire argument must be known; in a longer text an unknown name is left unchanged. Raises
        `InvalidArguments` if a value would change what was judged.
        """
        args = dict(invocation.args)
        filled = {
            key: await self._filled(invocation, key, value) for key, value in args.items() if has_secret_ref(value)
        }
        if all(filled[key] is args[key] for key in filled):
            return invocation
        tool = invocation.tool
        return Invocation(
            tool, invocation.args, tool.validate({**args, **filled}), invocation.call_id, invocation.parent
        )

    async def _filled(self, invocation: Invocation, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return await self._text(invocation, key, value)
        if is_mapping(value):
            return {k: await self._filled(invocation, key, v) for k, v in value.items()}
        if is_sequence(value):
            return [await self._filled(invocation, key, item) for item in value]
        return value

    async def _text(self, invocation: Invocation, key: str, text: str) -> str:
        parts: list[str] = []
        end = 0
        for match in SECRET_REF.finditer(text):
            whole = match[0] == text
            value = await self.take(match[1]) if whole else await self.find(match[1])
            if value is not None:
                self._know(match[1], value)
                parts += [text[end : match.start()], _prepare_secret(invocation, key, text, match, value)]
                end = match.end()
        return "".join([*parts, text[end:]]) if parts else text

    def _know(self, name: str, value: str) -> None:
        if len(value) < MIN_SECRET_CHARS:
            raise InvalidArguments(
                f"the secret {name!r} has fewer than {MIN_SECRET_CHARS} characters, and could not be kept out of results"
            )
        forms = {value, quote(value, safe=""), quote(value), json.dumps(value)[1:-1]}
        self.forms = tuple(sorted({*self.forms, *forms}, key=len, reverse=True))
        self._bus.hide = self.hidden
        self._artifacts.strained = self.strained

    # Taking out

    @property
    def ambient(self) -> tuple[str, ...]:
        """Values of the environment's variables whose names promise a secret; they do not go into the audit."""
        if self._ambient is None:
            found = {
                value
                for name, value in self._environment.items()
                if len(value) >= MIN_SECRET_CHARS and is_secret_name(name) and not STAND_IN.match(value)
            }
            self._ambient = tuple(sorted(found, key=len, reverse=True))
        return self._ambient

    def hidden(self, value: T) -> T:
        """Return the value with secrets given to calls redacted; the same object if it contains none."""
        return cast("T", redact_secrets(value, self.forms))

    def kept(self, value: T) -> T:
        """Return the value as stored in the audit log: secrets of the environment are redacted, too."""
        return cast("T", redact_secrets(value, (*self.forms, *self.ambient) if self.forms else self.ambient))

    def streamed(self, call_id: str, stream: str, text: str) -> str:
        """Return what may be shown of a running call's output now.

        A suffix that may be the beginning of a secret is held back until more output has arrived.
        """
        text = self.hidden(self._held.pop((call_id, stream), "") + text)
        kept = max((_partial_match_length(text, form) for form in self.forms), default=0)
        if kept:
            self._held[call_id, stream] = text[len(text) - kept :]
        return text[: len(text) - kept]

    def strained(self, data: bytes) -> tuple[bytes, bytes]:
        """Split file output into a redacted part and a suffix that may be the beginning of a secret."""
        kept = 0
        for form in map(_encode_form, self.forms):
            data = data.replace(form, REDACTED_TEXT.encode())
            kept = max(kept, _partial_match_length(data, form))
        return data[: len(data) - kept], data[len(data) - kept :]

    def rest(self, call_id: str) -> Iterator[tuple[str, str]]:
        """Yield the held-back output of a call that has ended, as stream and text."""
        for held in [held for held in self._held if held[0] == call_id]:
            yield held[1], self._held.pop(held)


def _prepare_secret(invocation: Invocation, key: str, text: str, found: re.Match[str], value: str) -> str:
    """Return the secret's value in the form to insert into the argument `key`.

    Raises `InvalidArguments` if it would change what the call was judged by.
    """
    effects = [effect for effect in invocation.tool.effects if effect.arg == key]
    name = found[1]
    for effect in effects:
        match effect:
            case Run():
                if not SHELL_SAFE.fullmatch(value):
                    raise InvalidArguments(f"the secret {name!r} holds characters that mean something in a command")
            case Send():
                place = URL_ORIGIN.match(text)
                if place is None or found.start() < place.end():
                    raise InvalidArguments(f"{key}: a secret may stand in the path or query of an address only")
                value = quote(value, safe="")
            case Input():
                if not value.isprintable():
                    raise InvalidArguments(f"the secret {name!r} holds characters that are keys, and is not typed")
            case _:
                raise InvalidArguments(f"{key}: a secret cannot be part of the {effect.what} that a call names")
    return value


def redact_secrets(value: Any, forms: tuple[str, ...], depth: int = MAX_SCAN_DEPTH) -> Any:
    """Return the value with each of these texts replaced by `[redacted]`; the same object if it contains none."""
    if not forms or value is None or isinstance(value, int | float):
        return value
    if not depth:
        # Nobody looks deeper, so nobody is shown it.
        return REDACTED_TEXT
    if isinstance(value, str):
        for form in forms:
            if form in value:
                value = value.replace(form, REDACTED_TEXT)
        return value
    if is_mapping(value):
        new = {redact_secrets(k, forms, depth - 1): redact_secrets(v, forms, depth - 1) for k, v in value.items()}
        return value if all(k in new and new[k] is v for k, v in value.items()) else new
    if is_sequence(value):
        changed = [redact_secrets(item, forms, depth - 1) for item in value]
        if all(a is b for a, b in zip(value, changed, strict=True)):
            return value
        return tuple(changed) if isinstance(value, tuple) else changed
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        changes = {k: n for k, v in fields.items() if (n := redact_secrets(v, forms, depth - 1)) is not v}
        return dataclasses.replace(value, **changes) if changes else value
    if isinstance(value, bytes):
        for form in forms:
            value = value.replace(_encode_form(form), REDACTED_TEXT.encode())
        return value
    return _redact_object(value, forms)


def _redact_object(value: object, forms: tuple[str, ...]) -> Any:
    """Redact secrets in any other object: if its text form contains any, return the redacted text instead."""
    try:
        text = str(value)
    # Handlers return anything: objects that fail to print.
    except Exception:  # noqa: BLE001
        return REDACTED_TEXT
    shown = redact_secrets(text, forms)
    return value if shown == text else shown


def _encode_form(form: str) -> bytes:
    return form.encode("utf-8", "surrogatepass")


def _partial_match_length(text: AnyStr, form: AnyStr) -> int:
    """Return the length of the longest suffix of the text that may be the beginning of the form."""
    longest = min(len(text), len(form) - 1)
    return next((size for size in range(longest, 0, -1) if form[:size] == text[-size:]), 0)


def _read_keyring(service: str, name: str) -> str | None:
    import keyring  # pyright: ignore[reportMissingImports] # an optional package
    import keyring.errors  # pyright: ignore[reportMissingImports]

    try:
        return keyring.get_password(service, name)  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    except keyring.errors.KeyringError:  # pyright: ignore[reportUnknownMemberType]
        # Nobody is at this keyring: locked, or no service here.
        return None
