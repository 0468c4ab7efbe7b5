"""Models: those of providers, the scripted one, and what a model of your own needs.

```python
from farhand import Agent
from farhand.models import Anthropic, ScriptedModel

agent = Agent(Anthropic("claude-sonnet-5", api_key="sk-ant-example", max_tokens=4_000))
offline = Agent(ScriptedModel(["Hello!"]))
```

A model of your own is any object with a `name` and a `stream` method: see `Model`. Names are loaded on first
use, so a provider's library is needed only by programs that use that provider.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farhand.core.run import Usage
    from farhand.errors import ModelFault
    from farhand.models.anthropic import Anthropic
    from farhand.models.backboard import Backboard
    from farhand.models.base import (
        CallDone,
        CallStart,
        ClosableModel,
        Image,
        InputDelta,
        Model,
        ModelEvent,
        Prompt,
        ReasoningDelta,
        ReasoningDone,
        StatefulModel,
        Stop,
        StopReason,
        TextDelta,
    )
    from farhand.models.openai import OpenAI, OpenAIChat
    from farhand.models.registry import load_model
    from farhand.models.scripted import Ask, Begin, Fail, Moment, Say, ScriptedModel, Step, Think, ToolResult

__all__ = [
    "Anthropic",
    "Ask",
    "Backboard",
    "Begin",
    "CallDone",
    "CallStart",
    "ClosableModel",
    "Fail",
    "Image",
    "InputDelta",
    "Model",
    "ModelEvent",
    "ModelFault",
    "Moment",
    "OpenAI",
    "OpenAIChat",
    "Prompt",
    "ReasoningDelta",
    "ReasoningDone",
    "Say",
    "ScriptedModel",
    "StatefulModel",
    "Step",
    "Stop",
    "StopReason",
    "TextDelta",
    "Think",
    "ToolResult",
    "Usage",
    "load_model",
]

_MODULE_OF = {
    "Anthropic": "farhand.models.anthropic",
    "Backboard": "farhand.models.backboard",
    "ModelFault": "farhand.errors",
    "OpenAI": "farhand.models.openai",
    "OpenAIChat": "farhand.models.openai",
    "Usage": "farhand.core.run",
    "load_model": "farhand.models.registry",
    **dict.fromkeys(
        ("Ask", "Begin", "Fail", "Moment", "Say", "ScriptedModel", "Step", "Think", "ToolResult"),
        "farhand.models.scripted",
    ),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'farhand.models' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF.get(name, "farhand.models.base")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
