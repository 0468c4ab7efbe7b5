"""The default store: one SQLite file, one server process, nothing to install.

store.py     the Store, and the registrations of clients
writer.py    the thread that writes, its connection, and group commit
held_rows.py look-up rows that are written once a run parks or ends
append.py    one append in that transaction: first all that may refuse it, then its rows; and rebuild
queries.py   what is read, and on which thread
files.py     files in pieces
purge.py     removes what is old
file.py      opens, locks and inspects the file
migrate.py   its tables
"""

from __future__ import annotations

from farhand.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
