"""Direct calls over an application's own socket, not through the bus.

GTK 3 carries out an action while it answers the call that requests it. If that opens a dialog with its own main loop
(`gtk_dialog_run`, as most file dialogs do), the application serves nothing more on that connection until the dialog is
closed: requested over the connection used for reading, it would seem to hang just when its dialog must be read.
Requesting an action over a separate connection leaves the others free.
"""

from __future__ import annotations

from dbus_fast import Message, MessageType

from handrail_accessibility.atspi.bus import CALL_TIMEOUT_S, AccessibilityBus, NoAnswer
from handrail_accessibility.atspi.connections import NoReplyReason


async def call_directly(
    bus: AccessibilityBus, app: str, path: str, interface: str, member: str, number: int
) -> bool | None:
    """Call a method that takes a number and returns a boolean; False also for an error, None without such a socket.

    Raises `NoAnswer` if the application accepted the call but does not answer it within a second.
    """
    peer = await bus.peer(app)
    if peer is None:
        return None
    message = Message(path=path, interface=interface, member=member, signature="i", body=[number])
    try:
        (reply,) = await peer.ask([message], timeout=CALL_TIMEOUT_S)
    finally:
        peer.disconnect()
    if reply is NoReplyReason.LATE:
        raise NoAnswer(f"{app} did not answer within {CALL_TIMEOUT_S:g} s")
    if reply is NoReplyReason.ENDED:
        return None
    return reply.message_type is MessageType.METHOD_RETURN and bool(reply.body and reply.body[0])
