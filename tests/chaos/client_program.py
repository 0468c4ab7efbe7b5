"""A client program as a process of its own: `python -m tests.chaos.client_program URL TOKEN ID FOLDER GRACE`.

Each handler notes in a file of its own that it ran, before it does anything else.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from farhand.client import Client


def main() -> None:
    url, token, client_id, folder, grace = sys.argv[1:]
    client = Client(url, client_id, token=token, grace_sec=float(grace), at_once=32)
    runs = Path(folder) / f"{client_id}.runs"

    # a busy machine may take longer than the usual time for a thousand of them
    @client.tool(timeout_sec=120)
    async def work(number: int) -> dict[str, object]:
        """Do something that must not be done twice.

        Args:
            number: What to do.
        """
        _note(runs, number)
        await asyncio.sleep(0.005)
        return {"number": number, "by": client_id}

    @client.tool
    async def hang(number: int) -> str:
        """Never come back.

        Args:
            number: What to do.
        """
        _note(runs, number)
        await asyncio.Event().wait()
        return ""

    asyncio.run(_run(client))


async def _run(client: Client) -> None:
    async with asyncio.TaskGroup() as group:
        greeting = group.create_task(_greet(client))
        await client.run()
        greeting.cancel()


async def _greet(client: Client) -> None:
    await client.connected.wait()
    sys.stdout.write("connected\n")
    sys.stdout.flush()


def _note(runs: Path, number: int) -> None:
    """One write, which no other one can tear apart."""
    file = os.open(runs, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{number}\n".encode())
    finally:
        os.close(file)


if __name__ == "__main__":
    main()
