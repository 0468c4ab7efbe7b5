-- One row per thread; its lock is what an append holds. Most appends change no column that an index has, so
-- that PostgreSQL can update the row in place: hence `written_hour`, since `written_at` always changes.
-- `bytes` is the size of its rows in the log; a snapshot counts once `is_purged`, since it stands for them.
CREATE TABLE threads (
    thread_no      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         text COLLATE "C" NOT NULL,
    subject        text COLLATE "C" NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    version        bigint NOT NULL DEFAULT 0,
    updated_at     double precision NOT NULL DEFAULT 0,
    run_id         text COLLATE "C",
    can_go_on      boolean NOT NULL DEFAULT false,
    is_running     boolean NOT NULL DEFAULT false,
    kept_from      bigint,
    worker         text COLLATE "C",
    lease_until    double precision NOT NULL DEFAULT 0,
    written_at     double precision NOT NULL DEFAULT 0,
    written_hour   bigint NOT NULL DEFAULT 0,
    is_covered     boolean NOT NULL DEFAULT true,
    is_purged      boolean NOT NULL DEFAULT false,
    bytes          bigint NOT NULL DEFAULT 0,
    snapshot_bytes bigint NOT NULL DEFAULT 0,
    body           bytea,
    UNIQUE (tenant, subject, thread_id)
) WITH (fillfactor = 70);

CREATE INDEX threads_by_use ON threads (tenant, subject, updated_at, thread_id);
CREATE INDEX threads_to_advance ON threads (thread_no) WHERE can_go_on;
CREATE INDEX threads_running ON threads (tenant, subject) WHERE is_running;
CREATE INDEX threads_of_worker ON threads (worker) WHERE worker IS NOT NULL;
CREATE INDEX threads_uncovered ON threads (written_hour) WHERE NOT is_covered;

CREATE TABLE log (
    thread_no bigint NOT NULL,
    version   bigint NOT NULL,
    at        double precision NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (thread_no, version)
);

CREATE INDEX log_by_age ON log (at);

CREATE TABLE snapshots (
    thread_no bigint PRIMARY KEY,
    version   bigint NOT NULL,
    body      bytea NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE calls (
    call_no     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    call_id     text COLLATE "C" NOT NULL,
    thread_no   bigint NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    subject     text COLLATE "C" NOT NULL,
    run_id      text COLLATE "C",
    approval_id text COLLATE "C",
    request_id  text COLLATE "C",
    client_id   text COLLATE "C",
    deadline    double precision,
    opened_at   double precision NOT NULL,
    settled_at  double precision,
    body        bytea NOT NULL,
    UNIQUE (tenant, subject, call_id)
) WITH (fillfactor = 80);

CREATE INDEX calls_of_thread ON calls (thread_no);
CREATE INDEX calls_by_approval ON calls (tenant, subject, approval_id) WHERE approval_id IS NOT NULL;
CREATE UNIQUE INDEX calls_by_request ON calls (tenant, subject, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX calls_open ON calls (tenant, subject, opened_at, call_id) WHERE settled_at IS NULL;
CREATE INDEX calls_of_client ON calls (client_id) WHERE settled_at IS NULL AND client_id IS NOT NULL;
CREATE INDEX calls_direct ON calls (opened_at, call_id) WHERE settled_at IS NULL AND run_id IS NULL;
CREATE INDEX calls_due ON calls (deadline) WHERE settled_at IS NULL AND deadline IS NOT NULL;
CREATE INDEX calls_settled ON calls (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE runs (
    tenant     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    thread_no  bigint NOT NULL,
    started_at double precision NOT NULL,
    ended_at   double precision,
    body       bytea NOT NULL,
    PRIMARY KEY (tenant, subject, run_id)
) WITH (fillfactor = 80);

CREATE INDEX runs_of_thread ON runs (thread_no);
CREATE INDEX runs_of_owner ON runs (tenant, subject, started_at, run_id);
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE tools (
    version text COLLATE "C" PRIMARY KEY,
    body    bytea NOT NULL
);

-- The last number that was given out, and the last one that a purge removed. A transaction that adds to a
-- feed holds its row until it ends, so that numbers appear in their order.
CREATE TABLE feeds (
    tenant  text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    last    bigint NOT NULL,
    purged  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, subject)
) WITH (fillfactor = 50);

-- The entries `no - count + 1` to `no`, stored together. What an append tells stands in its thread's log and
-- is only pointed at; the rest has a body of its own.
CREATE TABLE feed (
    tenant    text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    no        bigint NOT NULL,
    count     bigint NOT NULL,
    at        double precision NOT NULL,
    thread_id text COLLATE "C",
    thread_no bigint,
    version   bigint,
    body      bytea,
    PRIMARY KEY (tenant, subject, no)
);

CREATE INDEX feed_by_age ON feed (at);

-- `size` and `pieces` count what is here; `arrived` is true from the last piece on. `bound` is true once a
-- thread refers to the file: from then on it goes with its last thread and not by its age.
CREATE TABLE files (
    file_no    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ref        text COLLATE "C" NOT NULL UNIQUE,
    tenant     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    size       bigint NOT NULL,
    pieces     bigint NOT NULL,
    arrived    boolean NOT NULL,
    bound      boolean NOT NULL DEFAULT false,
    written_at double precision NOT NULL,
    body       bytea NOT NULL
);

CREATE INDEX files_of_owner ON files (tenant, subject, size);
CREATE INDEX files_unbound ON files (written_at) WHERE NOT bound;

CREATE TABLE pieces (
    file_no  bigint NOT NULL,
    piece_no bigint NOT NULL,
    piece    bytea NOT NULL,
    PRIMARY KEY (file_no, piece_no)
);

CREATE TABLE file_threads (
    thread_no bigint NOT NULL,
    file_no   bigint NOT NULL,
    PRIMARY KEY (thread_no, file_no)
);

CREATE INDEX file_threads_of_file ON file_threads (file_no);

CREATE TABLE clients (
    tenant    text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (tenant, subject, client_id)
);

-- Which stream of a client is its newest, on whichever process, and until when that one is known to be there.
CREATE TABLE streams (
    tenant     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    client_id  text COLLATE "C" NOT NULL,
    stream_no  bigint NOT NULL,
    here_until double precision NOT NULL,
    PRIMARY KEY (tenant, subject, client_id)
) WITH (fillfactor = 70);
