-- Threads and what was said in them, runs and their journals, calls and the tools they were opened with.
--
-- A record is JSON in `body`; columns beside it are only what a guard, a look-up or a scan needs. Rows are
-- numbered, because our ids are random: rows written together lie together, and one commit touches few pages.
-- Partial indexes hold open things only, so their size does not grow with the history.

CREATE TABLE threads (
    thread_no  INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    thread_id  TEXT NOT NULL,
    updated_at REAL NOT NULL,
    body       BLOB NOT NULL,
    UNIQUE (tenant, subject, thread_id)
);

CREATE INDEX threads_by_use ON threads (tenant, subject, updated_at, thread_id);

CREATE TABLE messages (
    message_no INTEGER PRIMARY KEY,
    thread_no  INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    body       BLOB NOT NULL,
    UNIQUE (thread_no, message_id)
);

-- No body: the store itself counts and changes what a run is. `stray_at` is the time from which on nobody
-- advances it though somebody could: the end of its lease, or 0 if it is parked with nothing open; else NULL.
CREATE TABLE runs (
    run_no       INTEGER PRIMARY KEY,
    run_id       TEXT NOT NULL UNIQUE,
    thread_no    INTEGER NOT NULL,
    state        TEXT NOT NULL,
    parked       INTEGER NOT NULL,
    step         INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    lease_until  REAL NOT NULL,
    last_seq     INTEGER NOT NULL,
    blockers     INTEGER NOT NULL,
    started_at   REAL NOT NULL,
    hold_for     REAL NOT NULL,
    ended_at     REAL,
    error        TEXT,
    stray_at     REAL,
    has_journal  INTEGER NOT NULL DEFAULT 1
);

CREATE INDEX runs_of_thread ON runs (thread_no);
CREATE UNIQUE INDEX runs_one_active ON runs (thread_no) WHERE ended_at IS NULL;
CREATE INDEX runs_stray ON runs (stray_at) WHERE stray_at IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL AND has_journal = 1;

CREATE TABLE events (
    run_no INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     REAL NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (run_no, seq)
) WITHOUT ROWID;

CREATE TABLE calls (
    call_no     INTEGER PRIMARY KEY,
    call_id     TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    subject     TEXT NOT NULL,
    thread_id   TEXT NOT NULL,
    run_no      INTEGER,
    step        INTEGER NOT NULL,
    approval_id TEXT,
    is_open     INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    deadline    REAL,
    settled_at  REAL,
    body        BLOB NOT NULL
);

CREATE INDEX calls_of_run ON calls (run_no) WHERE run_no IS NOT NULL;
CREATE INDEX calls_without_run ON calls (tenant, subject, thread_id) WHERE run_no IS NULL;
CREATE INDEX calls_of_approval ON calls (approval_id) WHERE approval_id IS NOT NULL;
CREATE INDEX calls_open ON calls (tenant, subject, thread_id) WHERE is_open = 1;
CREATE INDEX calls_due ON calls (deadline) WHERE is_open = 1 AND deadline IS NOT NULL;
CREATE INDEX calls_settled ON calls (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE tools (
    version TEXT PRIMARY KEY,
    body    BLOB NOT NULL
) WITHOUT ROWID;
