"""For tests of plugins: contracts to subclass, fakes, and sessions that run the real path. `pip install 'handrail-core[testing]'`

    async with open_test_session(tools=[greet]) as session:
        result = await session.call("greet", {"name": "Ada"})

The pytest plugin that comes with it gives the fixture `handrail_session`, the same in the test's own folder.
"""

from __future__ import annotations

from handrail.testing.backend_contract import VisionBackendContract as VisionBackendContract
from handrail.testing.evaluator_contract import EvaluatorContract as EvaluatorContract
from handrail.testing.fakes import (
    Always as Always,
    FakeAccessibility as FakeAccessibility,
    FakeBackend as FakeBackend,
    FakeDesktops as FakeDesktops,
    FakeScreen as FakeScreen,
    ScriptedConfirmer as ScriptedConfirmer,
    fake_backend as fake_backend,
    fake_service as fake_service,
)
from handrail.testing.sandbox_contract import SandboxContract as SandboxContract
from handrail.testing.session_fixtures import (
    open_test_runtime as open_test_runtime,
    open_test_session as open_test_session,
)
from handrail.testing.tool_contract import ToolContract as ToolContract

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
