"""Information that toolkits leave out of their accessibility data."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from handrail_accessibility.atspi.bus import A11Y_PREFIX, ROOT_PATH, AccessibilityBus, call_or_none

APPLICATION_INTERFACE = A11Y_PREFIX + "Application"
# GTK 4 names what has no name after its class, and says a name with a mnemonic twice: "_Act Act".
GTK_CLASS_NAME = re.compile("Gtk[A-Z][A-Za-z]+")


@dataclass(frozen=True, slots=True)
class ToolkitInfo:
    """The toolkit of an application, by the name and version that it gives itself."""

    name: str = ""
    version: str = ""

    @property
    def is_gtk4(self) -> bool:
        """It tells places from the window's corner, and of nothing but windows whether it shows."""
        return self.name.casefold() == "gtk" and self.version.startswith("4.")

    @property
    def has_ids(self) -> bool:
        """True if objects may have ids; GTK 3 never has any, and asking each object costs as much as the rest."""
        return not self.version.startswith("3.")

    @property
    def sets_unchecked(self) -> bool:
        """It sets a line of text as its program may: no validator or limit is asked, and nothing that waits for an edit by hand hears of it."""
        return self.name.casefold() == "qt"

    @property
    def names_choices(self) -> bool:
        """It names a box to choose in after its choice; what the box is called, the label beside it says."""
        return self.name.casefold() == "qt"

    def name_of(self, told: str) -> str:
        """Return a name as the user sees it."""
        if not self.is_gtk4:
            return told
        if GTK_CLASS_NAME.fullmatch(told):
            return ""
        plain = told.replace("_", "", 1)
        half = plain[: len(plain) // 2]
        return half if plain != told and plain == f"{half} {half}" else told


async def fetch_toolkit(bus: AccessibilityBus, app: str) -> ToolkitInfo:
    """Return the toolkit of an application, which is asked only once."""
    known = bus.toolkits.get(app)
    if isinstance(known, ToolkitInfo):
        return known
    name, version = await asyncio.gather(
        *(call_or_none(bus.get, app, ROOT_PATH, APPLICATION_INTERFACE, part) for part in ("ToolkitName", "Version"))
    )
    toolkit = ToolkitInfo(str(name or ""), str(version or ""))
    # One that is too busy to say is asked again.
    if name is not None:
        bus.toolkits[app] = toolkit
    return toolkit
