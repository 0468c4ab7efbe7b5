"""A store in dictionaries, for tests and for an Agent used without an app. Gone with the process.

store.py      the Store: `commit`, which write goes where, and every read
calls.py      calls, and the tools they were opened with
clients.py    registrations of clients
feed.py       what each owner is told
files.py      files, in pieces
journals.py   each run's events
requests.py   ids under which programs know calls of their own
runs.py       runs, and what they say
threads.py    threads and their messages
undo.py       how a commit that does not hold is taken back
"""

from __future__ import annotations

from farhand.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
