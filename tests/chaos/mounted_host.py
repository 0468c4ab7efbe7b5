"""A host program that mounts farhand and knows nothing of signals; its store is named by `FARHAND_STORE`."""

from __future__ import annotations

from fastapi import FastAPI

from farhand import create_app
from tests.chaos.agents import agent

hands = create_app(agent, allow_hosts=["assistant.example.org"])
hands.auth.token = "the-token-of-this-test"

app = FastAPI(lifespan=hands.lifespan)
app.mount("/assistant", hands)
