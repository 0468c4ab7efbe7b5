"""Tools to test an agent: a scripted model, a client that answers calls, and a clock that the test controls.

```python
from farhand import Agent
from farhand.testing import FarClient, ScriptedModel


async def test_the_agent_greets() -> None:
    async with FarClient(Agent(ScriptedModel(["Hello!"]))) as client:
        await client.chat("Hi.")
        assert await client.text() == "Hello!"
```

The pytest plugin provides the fixtures `far_client`, `farhand_app`, `fake_clock` and `memory_store`. To test
a store of your own, subclass `StoreLaws`. Names are imported on first use: a test that needs only the clock
imports no server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farhand.models.scripted import ScriptedModel
    from farhand.testing.answer_reader import ApprovalRequest, PendingCall
    from farhand.testing.clock import FakeClock
    from farhand.testing.current_context import acting_for
    from farhand.testing.far_client import FarClient, RequestRejected, ServerReply
    from farhand.testing.running_app import RunningApp, serve_app
    from farhand.testing.store_laws import DurableStoreLaws, StoreLaws

__all__ = [
    "ApprovalRequest",
    "DurableStoreLaws",
    "FakeClock",
    "FarClient",
    "PendingCall",
    "RequestRejected",
    "RunningApp",
    "ScriptedModel",
    "ServerReply",
    "StoreLaws",
    "acting_for",
    "serve_app",
]

_HOMES = {
    "farhand.models.scripted": ("ScriptedModel",),
    "farhand.testing.current_context": ("acting_for",),
    "farhand.testing.answer_reader": ("ApprovalRequest", "PendingCall"),
    "farhand.testing.clock": ("FakeClock",),
    "farhand.testing.far_client": ("FarClient", "ServerReply", "RequestRejected"),
    "farhand.testing.running_app": ("RunningApp", "serve_app"),
    "farhand.testing.store_laws": ("DurableStoreLaws", "StoreLaws"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'farhand.testing' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
