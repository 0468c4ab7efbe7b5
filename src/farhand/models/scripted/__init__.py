"""A model that follows a script: a function, steps or a YAML file. No key, no network, no randomness."""

from farhand.models.base import Stop
from farhand.models.scripted.model import (
    Ask,
    Begin,
    Fail,
    Moment,
    Say,
    ScriptedModel,
    Step,
    Think,
    ToolResult,
)

__all__ = ["Ask", "Begin", "Fail", "Moment", "Say", "ScriptedModel", "Step", "Stop", "Think", "ToolResult"]
