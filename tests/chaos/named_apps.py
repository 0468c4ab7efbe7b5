"""An app that leaves all settings to the program that serves it."""

from __future__ import annotations

from farhand import create_app
from tests.chaos.agents import agent

app = create_app(agent)
