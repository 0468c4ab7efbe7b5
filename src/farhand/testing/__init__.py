"""What tests need, ours and yours: a clock that stands still, a model with a script, a far hand that answers.

Names load when they are first used: a test that only needs the clock loads no server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farhand.models.scripted import ScriptedModel
    from farhand.testing.clock import FakeClock
    from farhand.testing.fake_anthropic import FakeAnthropic
    from farhand.testing.fake_backboard import FakeBackboard
    from farhand.testing.fake_openai import FakeOpenAI
    from farhand.testing.far_client import FarClient
    from farhand.testing.store_laws import DurableStoreLaws, StoreLaws
    from farhand.testing.ui_stream import StreamChecker

__all__ = [
    "DurableStoreLaws",
    "FakeAnthropic",
    "FakeBackboard",
    "FakeClock",
    "FakeOpenAI",
    "FarClient",
    "ScriptedModel",
    "StoreLaws",
    "StreamChecker",
]

_HOMES = {
    "farhand.models.scripted": ("ScriptedModel",),
    "farhand.testing.clock": ("FakeClock",),
    "farhand.testing.fake_anthropic": ("FakeAnthropic",),
    "farhand.testing.fake_backboard": ("FakeBackboard",),
    "farhand.testing.fake_openai": ("FakeOpenAI",),
    "farhand.testing.far_client": ("FarClient",),
    "farhand.testing.store_laws": ("DurableStoreLaws", "StoreLaws"),
    "farhand.testing.ui_stream": ("StreamChecker",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'farhand.testing' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
