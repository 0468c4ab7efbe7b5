-- Registered clients, what they are asked for, and what each owner is told.

ALTER TABLE calls ADD COLUMN client_id TEXT;
ALTER TABLE calls ADD COLUMN request_id TEXT;

CREATE INDEX calls_of_client ON calls (tenant, subject, client_id) WHERE is_open = 1 AND client_id IS NOT NULL;
CREATE UNIQUE INDEX calls_by_request ON calls (tenant, subject, request_id) WHERE request_id IS NOT NULL;

CREATE TABLE clients (
    tenant    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    client_id TEXT NOT NULL,
    version   INTEGER NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (tenant, subject, client_id)
) WITHOUT ROWID;

-- One row for each thing worth telling, numbered for each owner. What a run tells stands in its journal and is
-- only pointed at; the rest has a body of its own. A row that points at nothing keeps the number alone.
CREATE TABLE feed (
    tenant    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    feed_no   INTEGER NOT NULL,
    at        REAL NOT NULL,
    run_no    INTEGER,
    seq       INTEGER,
    thread_id TEXT,
    body      BLOB,
    PRIMARY KEY (tenant, subject, feed_no)
) WITHOUT ROWID;
