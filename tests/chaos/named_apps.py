"""An app that leaves everything to whoever serves it."""

from __future__ import annotations

from farhand import create_app
from tests.chaos.agents import agent

app = create_app(agent)
