"""The desktop program: `python -m examples.desktop_notes.notes URL FOLDER`, with the token in FARHAND_TOKEN.

Notes are the text files of a folder. The program runs until it is stopped, and then unregisters its tools.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from farhand.client import Client, current
from farhand.errors import FarhandError


def desk(url: str, folder: Path, token: str | None) -> Client:
    """A client with three handlers over this folder."""
    client = Client(url, "desk", token=token)

    @client.tool
    def read_note(name: str) -> str:
        """Read one note from the user's desk.

        Args:
            name: The name of the note, as search_notes lists it.
        """
        current().title = f"Reading {name}"
        return _note(folder, name).read_text()

    @client.tool
    def search_notes(words: str) -> list[str]:
        """List the notes on the user's desk that contain all of these words.

        Args:
            words: What to look for, separated by blanks.
        """
        found = []
        notes = sorted(folder.glob("*.txt"))
        for number, note in enumerate(notes, 1):
            current().progress(f"{number} of {len(notes)} notes")
            text = note.read_text().lower()
            if all(word in text for word in words.lower().split()):
                found.append(note.stem)
        return found

    @client.tool
    def notify(text: str) -> dict[str, bool]:
        """Show the user a notification.

        Args:
            text: One short sentence.
        """
        # a desktop program would show a pop-up; this one prints a line
        sys.stdout.write(f"notification: {text}\n")
        sys.stdout.flush()
        return {"shown": True}

    return client


async def run(client: Client) -> None:
    """Runs until Ctrl-C or SIGTERM; running handlers may finish."""
    loop = asyncio.get_running_loop()
    for stop in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(stop, client.stop)
    async with asyncio.TaskGroup() as group:
        greeting = group.create_task(_greet(client))
        await client.run()
        greeting.cancel()


async def _greet(client: Client) -> None:
    await client.connected.wait()
    sys.stdout.write("the desk is connected\n")
    sys.stdout.flush()


def _note(folder: Path, name: str) -> Path:
    """The model chooses the name, so it must not lead out of the folder."""
    if not name or name != Path(name).name:
        raise ValueError(f"there is no note '{name}'")
    note = folder / f"{name}.txt"
    if not note.is_file():
        raise ValueError(f"there is no note '{name}'")
    return note


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m examples.desktop_notes.notes URL FOLDER   (the token in FARHAND_TOKEN)")
    try:
        asyncio.run(run(desk(sys.argv[1], Path(sys.argv[2]).expanduser(), os.environ.get("FARHAND_TOKEN"))))
    except* FarhandError as refused:
        sys.exit("\n".join(str(error) for error in refused.exceptions))
