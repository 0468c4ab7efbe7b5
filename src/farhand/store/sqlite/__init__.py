"""The default store: one SQLite file, one server process, nothing to install.

A commit goes through these files, top to bottom:

    store.py     the Store: `commit` and every read
    writer.py    the one thread that writes; group commit
    commit.py    one commit enters the draft as a whole, or not at all
    threads.py runs.py calls.py clients.py feed.py files.py    what each write means: its guard and its change
    draft.py     what the transaction is about to write, over what is stored (overlay.py)
    flush.py     the draft becomes SQL

Beside them: `file.py` opens, locks and migrates; `reads.py` and `rows.py` turn rows into records; `purge.py`
removes what is old.
"""

from __future__ import annotations

from farhand.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
