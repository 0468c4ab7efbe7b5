"""For programs that offer tools to an assistant elsewhere: an editor, a desktop program, a worker.

    client = Client("http://127.0.0.1:8787", "my-notes", token="…")

    @client.tool
    def read_note(name: str) -> str:
        ...

    await client.run()

Loads no server. Needs `pip install 'farhand[client]'`.
"""

from __future__ import annotations

from farhand.client.client import Client
from farhand.client.ongoing import Ongoing, current

__all__ = ["Client", "Ongoing", "current"]
