"""The store for many processes: one PostgreSQL database, any number of farhand servers.

A commit goes through these files, top to bottom:

    store.py      the Store: `commit` and every read
    writer.py     the one task of this process that writes; what queued meanwhile shares a transaction
    gather.py     locks and reads the rows that the guards of a batch will look at
    commit.py     one commit enters the draft as a whole, or not at all
    threads.py runs.py calls.py    what each write means: its guard and its change
    draft.py      what the transaction is about to write, over what was gathered
    flush.py      the draft becomes SQL (written.py has the statements)
    direct.py clients.py files.py    rare writes, made by the database itself
    bell.py       NOTIFY and LISTEN: hints to and from the other processes (hints.py says what is in one;
                  heard.py reads what they wrote; stopped.py ends listeners that hold up the others)

Beside them: `place.py` reads the address; `line.py` is the only importer of the driver; `lines.py` are the
connections that read, and `at_once.py` says what shares a statement on them; `migrate.py` makes the tables;
`hours.py` tells the database's time; `streams.py` knows which clients are here; `purge.py` removes what is
old.
"""

from __future__ import annotations

from farhand.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
