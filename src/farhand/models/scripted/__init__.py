"""A model that follows a script: a function, steps or a YAML file. No key, no network, no chance."""

from farhand.models.base import Stop
from farhand.models.scripted.model import ScriptedModel
from farhand.models.scripted.moment import Moment, Returned
from farhand.models.scripted.step import Ask, Begin, Fail, Say, Step, Think

__all__ = ["Ask", "Begin", "Fail", "Moment", "Returned", "Say", "ScriptedModel", "Step", "Stop", "Think"]
