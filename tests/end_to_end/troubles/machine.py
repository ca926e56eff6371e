"""The machine."""

from __future__ import annotations

import socket

from tests.end_to_end.troubles.place import Met, Place

INSIDE = ("bwrap", "--dev-bind", "/", "/")
CHANGES = ("call", "execute_cli", "--args", '{"command": "echo hello > hello.txt"}')
WAIT = ("call", "wait", "--args", '{"seconds": 0.1}')


def the_port_is_taken(place: Place) -> Met:
    """The port is in use."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        place.shown[port] = "8000"
        return place.handrail("serve", "--http", "--port", port, plugins="mcp")


def the_port_of_the_console_is_taken(place: Place) -> Met:
    """The console's port is in use."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        place.shown[port] = "7348"
        return place.handrail("console", "--port", port, plugins="console")


def the_home_is_read_only(place: Place) -> Met:
    """The home folder is read-only."""
    state = str(place.state)
    return place.handrail(*WAIT, inside=(*INSIDE, "--ro-bind", state, state, "--"))


def the_disk_is_full(place: Place) -> Met:
    """The disk is full."""
    fill = 'head -c 9000 /dev/zero >"$HANDRAIL_HOME/x" 2>/dev/null; exec "$@"'
    disk = (*INSIDE, "--size", "4096", "--tmpfs", str(place.state), "--", "sh", "-c", fill, "sh")
    return place.handrail(*WAIT, inside=disk)


def anybody_can_write_the_home(place: Place) -> Met:
    """Every user can write to Handrail's folder."""
    place.state.chmod(0o777)
    return place.handrail("config")


def there_is_no_sandbox(place: Place) -> Met:
    """There is no sandbox.

    bubblewrap is not installed."""
    return place.handrail(*CHANGES, plugins="cli", PATH=place.programs("bash"))


def the_sandbox_may_not_be_made(place: Place) -> Met:
    """There is no sandbox in a container.

    bubblewrap is installed, but the container does not permit the namespaces that it needs."""
    return place.handrail(
        *CHANGES, plugins="cli", inside=("bwrap", "--unshare-user", "--disable-userns", *INSIDE[1:], "--")
    )


def the_file_of_a_client_is_broken(place: Place) -> Met:
    """The configuration of an MCP client is broken."""
    place.file("../.gemini/settings.json", '{"mcpServers": ')
    return place.handrail("mcp", "install", "gemini", plugins="mcp")


def a_server_does_not_start(place: Place) -> Met:
    """A configured MCP server does not start."""
    return place.handrail("tools", config='[mcp.servers.docs]\ncommand = ["docs-server"]\n', plugins="mcp")


def a_browser_is_not_installed(place: Place) -> Met:
    """There is no browser."""
    given = '{"action": "navigate", "url": "https://example.org/"}'
    words = ("call", "execute_browser", "--yes", "--args", given)
    return place.handrail(*words, plugins="browser", PATH=place.programs("bash"))
