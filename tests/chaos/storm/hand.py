"""A registered client whose connection breaks and whose servers die. Writes down what it started."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farhand.client import Client, connection
from tests.chaos.storm.agent import MOMENT_SEC, NOTES
from tests.chaos.storm.servers import TOKEN

GRACE_SEC = 20.0
SILENCE_SEC = 3.0
"""A line that says nothing for so long is dead: servers here say something every half second."""

LONGEST_WAIT_SEC = 0.3
"""Between two tries: servers here are back at once."""


@asynccontextmanager
async def hands(ports: list[int], folder: Path) -> AsyncIterator[None]:
    """One for each port; each is `hand` with its number, and offers `work`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "STREAM_SILENCE_SEC", SILENCE_SEC)
        patch.setattr(connection, "ANSWER_WITHIN_SEC", SILENCE_SEC)
        patch.setattr(connection, "LONGEST_WAIT_SEC", LONGEST_WAIT_SEC)
        async with asyncio.TaskGroup() as group:
            clients = [_hand(f"hand{number}", port, folder) for number, port in enumerate(ports)]
            tasks = [group.create_task(client.run()) for client in clients]
            for client in clients:
                await client.connected.wait()
            yield
            for task in tasks:
                task.cancel()


def _hand(name: str, port: int, folder: Path) -> Client:
    client = Client(f"http://127.0.0.1:{port}", name, token=TOKEN, grace_sec=GRACE_SEC, at_once=64)

    @client.tool
    async def work(subject: str) -> dict[str, str]:
        """Do something that must not be done twice.

        Args:
            subject: What to do.
        """
        began = {"began": f"client_{name}_work", "subject": subject, "idempotent": False}
        with (folder / f"{NOTES}.jsonl").open("a") as notes:
            notes.write(json.dumps({**began, "began_at": time.time()}) + "\n")
        await asyncio.sleep(MOMENT_SEC)
        return {"by": name, "subject": subject}

    return client
