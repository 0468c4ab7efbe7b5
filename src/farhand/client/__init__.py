"""For programs that offer their tools to an assistant on a farhand server: editors, desktop apps, workers.

    from farhand.client import Client

    client = Client("http://127.0.0.1:8787", "my-notes", token="…")

    @client.tool
    def read_note(name: str) -> str:
        '''Read a note.'''
        return (notes / name).read_text()

    await client.run()

Imports nothing of the server. Needs `pip install 'farhand[client]'`.
"""

from __future__ import annotations

from farhand.client.call_context import CallContext, current
from farhand.client.client import Client

__all__ = ["CallContext", "Client", "current"]
