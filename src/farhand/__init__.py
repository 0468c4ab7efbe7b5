"""farhand lets a language model use hands that are not on the server.

Each name is imported when it is first used, so that a program imports only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farhand.agent.agent import Agent, Pending, RunResult
    from farhand.agent.keyed_calls import SettledCall, Waiting
    from farhand.agent.offered_tools import RequestTools
    from farhand.cli.serve import aserve, serve
    from farhand.clients.registry import ClientTools
    from farhand.core.approval import Answer
    from farhand.core.file import FileRules
    from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
    from farhand.core.principal import Owner, Principal
    from farhand.core.settings import ChatRules, Limits, Settings, Timeouts
    from farhand.errors import FarhandError
    from farhand.models.scripted import ScriptedModel
    from farhand.server.app import App, create_app
    from farhand.tools.context import Approved, Context, NotAnswered, ask, current
    from farhand.tools.decorate import tool
    from farhand.tools.execute import ToolFailed
    from farhand.tools.forms import FormAnswer, ask_form
    from farhand.tools.toolbox import Toolbox

__all__ = [
    "Agent",
    "Answer",
    "App",
    "Approved",
    "Cancelled",
    "ChatRules",
    "ClientTools",
    "Context",
    "Denied",
    "Failure",
    "FarhandError",
    "FileRules",
    "FormAnswer",
    "Limits",
    "NotAnswered",
    "Outcome",
    "Owner",
    "Pending",
    "Principal",
    "RequestTools",
    "RunResult",
    "ScriptedModel",
    "Settings",
    "SettledCall",
    "Success",
    "TimedOut",
    "Timeouts",
    "ToolFailed",
    "Toolbox",
    "Waiting",
    "aserve",
    "ask",
    "ask_form",
    "create_app",
    "current",
    "serve",
    "tool",
]

_HOMES = {
    "farhand.agent.agent": ("Agent", "Pending", "RunResult"),
    "farhand.agent.keyed_calls": ("SettledCall", "Waiting"),
    "farhand.agent.offered_tools": ("RequestTools",),
    "farhand.clients.registry": ("ClientTools",),
    "farhand.core.approval": ("Answer",),
    "farhand.core.file": ("FileRules",),
    "farhand.core.outcome": ("Cancelled", "Denied", "Failure", "Outcome", "Success", "TimedOut"),
    "farhand.core.principal": ("Owner", "Principal"),
    "farhand.core.settings": ("ChatRules", "Limits", "Timeouts", "Settings"),
    "farhand.errors": ("FarhandError",),
    "farhand.models.scripted": ("ScriptedModel",),
    "farhand.cli.serve": ("aserve", "serve"),
    "farhand.server.app": ("App", "create_app"),
    "farhand.tools.context": ("Approved", "Context", "NotAnswered", "ask", "current"),
    "farhand.tools.decorate": ("tool",),
    "farhand.tools.execute": ("ToolFailed",),
    "farhand.tools.forms": ("FormAnswer", "ask_form"),
    "farhand.tools.toolbox": ("Toolbox",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        # `name` and `obj` let Python add "Did you mean"
        raise AttributeError(
            f"module 'farhand' has no attribute {name!r}", name=name, obj=import_module(__name__)
        )
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
