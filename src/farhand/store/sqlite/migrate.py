"""The tables of a SQLite store, and the numbered steps that upgrade a file, each in one transaction.

From version 1 on, every version of farhand opens what an older one wrote. A step is added after the others
and never changed again.

A record is JSON in `record`; other columns are only what a guard, a look-up or a scan needs. Rows are
numbered, because our ids are random: rows written together are stored together, and one commit touches few
pages. Each index says which query it serves; indexes of open things only do not grow with the history.
"""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from farhand.errors import BadSetting

TABLES = """
-- `oldest_at` and `appended_at` are the times of the first and of the last row that the log has of a thread
-- (none: NULL, and the time of the last one that was there). `size` is what these rows take, and the snapshot
-- as well once rows that it stands for are gone. `worker` has the lease until `lease_until`; without a worker
-- it is a reservation.
CREATE TABLE threads (
    no               INTEGER PRIMARY KEY,
    tenant           TEXT NOT NULL,
    subject          TEXT NOT NULL,
    thread_id        TEXT NOT NULL,
    version          INTEGER NOT NULL,
    updated_at       REAL NOT NULL,
    oldest_at        REAL,
    appended_at      REAL NOT NULL,
    snapshot_version INTEGER NOT NULL,
    kept_from        INTEGER,
    size             INTEGER NOT NULL,
    can_go_on        INTEGER NOT NULL,
    is_running       INTEGER NOT NULL,
    open_calls       INTEGER NOT NULL,
    run_id           TEXT,
    worker           TEXT,
    lease_until      REAL,
    record           BLOB NOT NULL,
    -- every append, every load, and the counts of a tenant
    UNIQUE (tenant, subject, thread_id)
);
-- an owner's list
CREATE INDEX threads_used ON threads (tenant, subject, updated_at, thread_id);
-- runs that a worker may claim, the renewal of leases, and their end at start
CREATE INDEX threads_going ON threads (can_go_on) WHERE can_go_on = 1;
-- a purge, and the threads that need a snapshot before it; changes only with the first row that is there
CREATE INDEX threads_oldest ON threads (oldest_at) WHERE oldest_at IS NOT NULL;

CREATE TABLE log (
    thread_no INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    at        REAL NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (thread_no, version)
) WITHOUT ROWID;

CREATE TABLE snapshots (
    thread_no INTEGER PRIMARY KEY,
    version   INTEGER NOT NULL,
    body      BLOB NOT NULL
);

CREATE TABLE calls (
    no          INTEGER PRIMARY KEY,
    call_id     TEXT NOT NULL UNIQUE,
    thread_no   INTEGER NOT NULL,
    tenant      TEXT NOT NULL,
    subject     TEXT NOT NULL,
    run_id      TEXT,
    approval_id TEXT,
    request_id  TEXT,
    client_id   TEXT,
    deadline    REAL,
    opened_at   REAL NOT NULL,
    settled_at  REAL,
    record      BLOB NOT NULL
);
-- the deletion of a thread
CREATE INDEX calls_of_thread ON calls (thread_no);
-- an approval's answer
CREATE INDEX calls_of_approval ON calls (approval_id) WHERE approval_id IS NOT NULL;
-- a program's request, which it may make once
CREATE UNIQUE INDEX calls_of_request ON calls (tenant, subject, request_id) WHERE request_id IS NOT NULL;
-- what is open of an owner, and the counts of a tenant
CREATE INDEX calls_open ON calls (tenant, subject, opened_at, call_id) WHERE settled_at IS NULL;
-- deadlines
CREATE INDEX calls_due ON calls (deadline, call_id) WHERE settled_at IS NULL AND deadline IS NOT NULL;
-- what programs asked for without a run, and what clients are asked for; of all owners, at start
CREATE INDEX calls_direct ON calls (opened_at, call_id) WHERE settled_at IS NULL AND run_id IS NULL;
CREATE INDEX calls_of_clients ON calls (opened_at, call_id)
    WHERE settled_at IS NULL AND client_id IS NOT NULL;
-- a purge
CREATE INDEX calls_settled ON calls (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE runs (
    no         INTEGER PRIMARY KEY,
    run_id     TEXT NOT NULL UNIQUE,
    thread_no  INTEGER NOT NULL,
    tenant     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    started_at REAL NOT NULL,
    ended_at   REAL,
    record     BLOB NOT NULL
);
-- an owner's list, and the deletion of a thread
CREATE INDEX runs_begun ON runs (tenant, subject, started_at, run_id, thread_no);
-- a purge
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE tools (
    version TEXT PRIMARY KEY,
    record  BLOB NOT NULL
) WITHOUT ROWID;

-- Entries that were stored together: numbers `no - count + 1` to `no`. What an append says is in the log and
-- is only pointed at; the rest has a body of its own. A row that points at nothing keeps its numbers alone;
-- one of no entries says up to which number all are purged.
CREATE TABLE feed (
    tenant    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    no        INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    at        REAL NOT NULL,
    thread_no INTEGER,
    version   INTEGER,
    thread_id TEXT,
    body      BLOB,
    PRIMARY KEY (tenant, subject, no)
) WITHOUT ROWID;

-- Threads that are gone, while rows of their logs are not yet: those go a few at a time. Until then their
-- numbers are not used again.
CREATE TABLE removed_threads (
    no INTEGER PRIMARY KEY
);

CREATE TABLE clients (
    tenant    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    client_id TEXT NOT NULL,
    version   INTEGER NOT NULL,
    record    BLOB NOT NULL,
    PRIMARY KEY (tenant, subject, client_id)
) WITHOUT ROWID;

-- `size` and `pieces` count what is here; `is_complete` is 1 from the last piece on. `is_bound` is 1 once a
-- thread refers to the file: from then on it goes with its last thread and not by its age.
CREATE TABLE files (
    no          INTEGER PRIMARY KEY,
    ref         TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    subject     TEXT NOT NULL,
    size        INTEGER NOT NULL,
    pieces      INTEGER NOT NULL,
    is_complete INTEGER NOT NULL,
    is_bound    INTEGER NOT NULL,
    written_at  REAL NOT NULL,
    record      BLOB NOT NULL
);
-- how much is kept for an owner or a tenant
CREATE INDEX files_of_owner ON files (tenant, subject, size);
-- a purge, and the start
CREATE INDEX files_unbound ON files (written_at) WHERE is_bound = 0;

CREATE TABLE file_pieces (
    file_no  INTEGER NOT NULL,
    piece_no INTEGER NOT NULL,
    piece    BLOB NOT NULL,
    PRIMARY KEY (file_no, piece_no)
);

CREATE TABLE file_threads (
    thread_no INTEGER NOT NULL,
    file_no   INTEGER NOT NULL,
    PRIMARY KEY (thread_no, file_no)
) WITHOUT ROWID;
-- which other threads have a file
CREATE INDEX file_threads_of_file ON file_threads (file_no);

-- Files that are gone, while their pieces are not yet: those go a few at a time, since removing a blob costs
-- as much as writing it. Until then their numbers are not used again.
CREATE TABLE removed_files (
    file_no INTEGER PRIMARY KEY
);
"""


APPLICATION_ID = 0x46484C47
"""`FHLG` in the file's header: another program's database is never touched."""

UNRELEASED_ID = 0x46415248
"""`FARH`: tables from before the first release, which are not supported."""

# until it changes, a call from before this step is one that needs a worker
NEEDS_WORKER = """
ALTER TABLE calls ADD COLUMN needs_worker INTEGER NOT NULL DEFAULT 1;
DROP INDEX calls_direct;
-- what programs asked for without a run and a worker has to look after; of all owners
CREATE INDEX calls_for_worker ON calls (opened_at, call_id)
    WHERE settled_at IS NULL AND run_id IS NULL AND needs_worker;
"""

STEPS: tuple[str, ...] = (TABLES, NEEDS_WORKER)
"""The step at index n makes version n + 1."""

log = logging.getLogger("farhand.store")


def latest_version() -> int:
    return len(STEPS)


def foreign_tables(db: sqlite3.Connection) -> tuple[str, str] | None:
    """What is wrong with a file that is not ours, and what to do; None if it is ours, or new."""
    (owner,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner == UNRELEASED_ID:
        return "was written by a farhand from before its first release", "Use a new file."
    if owner != APPLICATION_ID and tables:
        return "is a database of another program", "Name another file; farhand does not touch this one."
    return None


def check_ours(db: sqlite3.Connection, place: Path) -> None:
    foreign = foreign_tables(db)
    if foreign is not None:
        problem, hint = foreign
        raise BadSetting(f"'{place}' {problem}.", hint=hint)


def check_version(db: sqlite3.Connection, place: Path) -> None:
    """For callers that use the tables as they are."""
    stored, latest = stored_version(db), latest_version()
    if stored != latest:
        raise BadSetting(
            f"The store '{place}' has tables of version {stored}; this farhand uses version {latest}.",
            hint="Use the version of its servers, or start a server of the newer version first.",
        )


def migrate(db: sqlite3.Connection, place: Path) -> None:
    stored, latest = stored_version(db), latest_version()
    if stored > latest:
        raise BadSetting(
            f"The store '{place}' was written by a newer farhand ({stored}; this one knows {latest}).",
            hint="Use that version of farhand, or another file.",
        )
    if 0 < stored < latest:
        # rewriting a table may take long, and nothing is served meanwhile
        log.warning("upgrading the store from version %d to %d: this may take a while", stored, latest)
    for number, sql in enumerate(STEPS[stored:], stored + 1):
        _run_step(db, number, sql)


def stored_version(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def rewrite_header(db: sqlite3.Connection) -> None:
    """Changes nothing, but needs a page like any write: the version is written again."""
    db.execute(f"PRAGMA user_version = {stored_version(db)}")


def _run_step(db: sqlite3.Connection, number: int, sql: str) -> None:
    """One transaction: a crash in the middle leaves the previous version."""
    header = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
    try:
        db.executescript(f"BEGIN IMMEDIATE; {sql} {header} COMMIT;")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
