"""The statements of the PostgreSQL store of logs. Each takes a whole batch, as one array per column."""

from __future__ import annotations

SCHEMA = """
CREATE TABLE IF NOT EXISTS log_threads (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    subject text NOT NULL,
    thread_id text NOT NULL,
    version bigint NOT NULL DEFAULT 0,
    updated_at double precision NOT NULL DEFAULT 0,
    can_go_on boolean NOT NULL DEFAULT false,
    worker text,
    lease_until double precision,
    record bytea NOT NULL DEFAULT '{}',
    UNIQUE (tenant, subject, thread_id)
);
CREATE INDEX IF NOT EXISTS log_threads_used ON log_threads (tenant, subject, updated_at, thread_id);
CREATE INDEX IF NOT EXISTS log_threads_going ON log_threads (no) WHERE can_go_on;
CREATE INDEX IF NOT EXISTS log_threads_worker ON log_threads (worker) WHERE worker IS NOT NULL;
CREATE TABLE IF NOT EXISTS log_rows (
    thread_no bigint NOT NULL REFERENCES log_threads ON DELETE CASCADE,
    version bigint NOT NULL,
    at double precision NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (thread_no, version)
);
CREATE TABLE IF NOT EXISTS log_snapshots (
    thread_no bigint PRIMARY KEY REFERENCES log_threads ON DELETE CASCADE,
    version bigint NOT NULL,
    body bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS log_calls (
    call_id text PRIMARY KEY,
    thread_no bigint NOT NULL REFERENCES log_threads ON DELETE CASCADE,
    tenant text NOT NULL,
    subject text NOT NULL,
    approval_id text,
    request_id text,
    client_id text,
    deadline double precision,
    opened_at double precision NOT NULL,
    settled_at double precision,
    record bytea NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS log_calls_approval ON log_calls (approval_id);
CREATE INDEX IF NOT EXISTS log_calls_request ON log_calls (tenant, subject, request_id);
CREATE INDEX IF NOT EXISTS log_calls_open ON log_calls (tenant, subject, opened_at) WHERE settled_at IS NULL;
CREATE INDEX IF NOT EXISTS log_calls_due ON log_calls (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX IF NOT EXISTS log_calls_settled ON log_calls (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS log_calls_thread ON log_calls (thread_no);
CREATE TABLE IF NOT EXISTS log_feeds (
    tenant text NOT NULL,
    subject text NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (tenant, subject)
);
CREATE TABLE IF NOT EXISTS log_feed (
    tenant text NOT NULL,
    subject text NOT NULL,
    no bigint NOT NULL,
    thread_no bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (tenant, subject, no),
    FOREIGN KEY (thread_no, version) REFERENCES log_rows ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS log_feed_row ON log_feed (thread_no, version);
"""

NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"

MAKE_THREADS = """
INSERT INTO log_threads (tenant, subject, thread_id)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) ORDER BY 1, 2, 3
ON CONFLICT DO NOTHING
"""
LOCK = """
SELECT tenant, subject, thread_id, no, version FROM log_threads
WHERE (tenant, subject, thread_id) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))
ORDER BY tenant, subject, thread_id FOR UPDATE
"""
ADD_ROWS = """
INSERT INTO log_rows SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::bytea[])
"""
UPDATE_THREADS = """
UPDATE log_threads t
SET version = n.version, updated_at = n.updated_at, can_go_on = n.can_go_on, record = n.record
FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::boolean[], $5::bytea[])
    AS n (no, version, updated_at, can_go_on, record)
WHERE t.no = n.no
"""
ADD_CALLS = """
INSERT INTO log_calls
SELECT * FROM unnest(
    $1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::float8[], $9::float8[], $10::float8[], $11::bytea[]
)
ON CONFLICT (call_id) DO UPDATE
SET deadline = excluded.deadline, settled_at = excluded.settled_at, record = excluded.record
"""
ADD_LEASES = """
UPDATE log_threads t
SET worker = n.worker, lease_until = CASE WHEN n.worker IS NULL THEN NULL ELSE n.until END
FROM unnest($1::bigint[], $2::text[], $3::float8[]) AS n (no, worker, until)
WHERE t.no = n.no
"""
ADD_SNAPSHOTS = """
INSERT INTO log_snapshots SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
ON CONFLICT (thread_no) DO UPDATE SET version = excluded.version, body = excluded.body
"""
COUNT_FEED = """
INSERT INTO log_feeds SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
ON CONFLICT (tenant, subject) DO UPDATE SET last = log_feeds.last + excluded.last
RETURNING tenant, subject, last
"""
ADD_FEED = """
INSERT INTO log_feed SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
"""

SNAPSHOT = """
SELECT s.version, s.body FROM log_snapshots s JOIN log_threads t ON t.no = s.thread_no
WHERE t.tenant = $1 AND t.subject = $2 AND t.thread_id = $3
"""
ROWS = """
SELECT r.version, r.at, r.body FROM log_rows r JOIN log_threads t ON t.no = r.thread_no
WHERE t.tenant = $1 AND t.subject = $2 AND t.thread_id = $3 AND r.version > $4 ORDER BY r.version
"""
CALLS = """
SELECT c.tenant, c.subject, t.thread_id, c.record FROM log_calls c JOIN log_threads t ON t.no = c.thread_no
"""
THREADS = "SELECT tenant, subject, thread_id, version, record FROM log_threads"
RENEW = "UPDATE log_threads SET lease_until = $2 WHERE worker = $1"
FEED = """
SELECT f.no, t.thread_id, r.version, r.at, r.body
FROM log_feed f JOIN log_threads t ON t.no = f.thread_no
JOIN log_rows r ON r.thread_no = f.thread_no AND r.version = f.version
WHERE f.tenant = $1 AND f.subject = $2 AND f.no > $3 ORDER BY f.no LIMIT $4
"""
DELETE = """
DELETE FROM log_threads WHERE tenant = $1 AND subject = $2 AND thread_id = $3 AND version = $4 RETURNING no
"""
PURGE = """
WITH gone AS (
    DELETE FROM log_rows r USING log_snapshots s
    WHERE s.thread_no = r.thread_no AND r.version <= s.version AND r.at < $1
    RETURNING 1
)
SELECT count(*) FROM gone
"""
PURGE_CALLS = "DELETE FROM log_calls WHERE settled_at < $1"
