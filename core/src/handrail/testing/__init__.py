"""For tests of plugins: contracts to subclass, fakes, and sessions that run the real path. `pip install 'handrail-core[testing]'`

    async with open_test_session(tools=[greet]) as session:
        result = await session.call("greet", {"name": "Ada"})

The pytest plugin that comes with it gives the fixture `handrail_session`, the same in the test's own folder.
"""

from __future__ import annotations

from handrail.testing.backends import VisionBackendContract as VisionBackendContract
from handrail.testing.contracts import ToolContract as ToolContract
from handrail.testing.evaluators import EvaluatorContract as EvaluatorContract
from handrail.testing.fakes import Always as Always
from handrail.testing.fakes import FakeAccessibility as FakeAccessibility
from handrail.testing.fakes import FakeBackend as FakeBackend
from handrail.testing.fakes import FakeDesktops as FakeDesktops
from handrail.testing.fakes import FakeScreen as FakeScreen
from handrail.testing.fakes import ScriptedConfirmer as ScriptedConfirmer
from handrail.testing.fakes import fake_backend as fake_backend
from handrail.testing.fakes import fake_service as fake_service
from handrail.testing.sandboxes import SandboxContract as SandboxContract
from handrail.testing.sessions import open_test_runtime as open_test_runtime
from handrail.testing.sessions import open_test_session as open_test_session

__all__ = [
    "Always",
    "EvaluatorContract",
    "FakeAccessibility",
    "FakeBackend",
    "FakeDesktops",
    "FakeScreen",
    "SandboxContract",
    "ScriptedConfirmer",
    "ToolContract",
    "VisionBackendContract",
    "fake_backend",
    "fake_service",
    "open_test_runtime",
    "open_test_session",
]
