"""The store for many processes: one PostgreSQL database, any number of farhand servers.

store.py        the Store, its files and its clients
append.py       the one task of this process that appends; what queued meanwhile shares a transaction
batch.py        that transaction: locks, compares, judges and writes a batch of appends
queries.py      its statements, and rows that become values
purge.py        removes what is old, removes threads, rebuilds look-ups
notify.py       LISTEN and NOTIFY: hints to and from the other processes
connection.py   the address, one connection, the database's time; the only importer of the driver
pool.py         the connections that read
schema.py       how the tables are made and brought up to date, and what is wrong with a database
tables.sql      the tables
"""

from __future__ import annotations

from farhand.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
