"""farhand: lets a language model use hands that are not on the server.

Names load when they are first used, so that a program which only needs one of them loads only that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farhand.agent.agent import Agent, Pending, RunResult
    from farhand.cli.serving import aserve, serve
    from farhand.clients.roster import ClientTools
    from farhand.core.approval import Answer
    from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
    from farhand.core.principal import Owner, Principal
    from farhand.core.settings import ChatRules, Limits, Patience, Settings
    from farhand.errors import FarhandError
    from farhand.models.scripted import ScriptedModel
    from farhand.server.app import create_app
    from farhand.tools.decorate import tool
    from farhand.tools.execute import ToolFailed
    from farhand.tools.toolbox import Toolbox

__all__ = [
    "Agent",
    "Answer",
    "Cancelled",
    "ChatRules",
    "ClientTools",
    "Denied",
    "Failure",
    "FarhandError",
    "Limits",
    "Outcome",
    "Owner",
    "Patience",
    "Pending",
    "Principal",
    "RunResult",
    "ScriptedModel",
    "Settings",
    "Success",
    "TimedOut",
    "ToolFailed",
    "Toolbox",
    "aserve",
    "create_app",
    "serve",
    "tool",
]

_HOMES = {
    "farhand.agent.agent": ("Agent", "Pending", "RunResult"),
    "farhand.clients.roster": ("ClientTools",),
    "farhand.core.approval": ("Answer",),
    "farhand.core.outcome": ("Cancelled", "Denied", "Failure", "Outcome", "Success", "TimedOut"),
    "farhand.core.principal": ("Owner", "Principal"),
    "farhand.core.settings": ("ChatRules", "Limits", "Patience", "Settings"),
    "farhand.errors": ("FarhandError",),
    "farhand.models.scripted": ("ScriptedModel",),
    "farhand.cli.serving": ("aserve", "serve"),
    "farhand.server.app": ("create_app",),
    "farhand.tools.decorate": ("tool",),
    "farhand.tools.execute": ("ToolFailed",),
    "farhand.tools.toolbox": ("Toolbox",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'farhand' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
