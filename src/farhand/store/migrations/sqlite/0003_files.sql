-- Files, in pieces, and the threads that refer to them.

-- `size` and `pieces` count what is here; `arrived` is 1 from the last piece on. `bound` is 1 once a thread refers
-- to the file: from then on it goes with its last thread and not by its age.
CREATE TABLE files (
    file_no    INTEGER PRIMARY KEY,
    ref        TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    size       INTEGER NOT NULL,
    pieces     INTEGER NOT NULL,
    arrived    INTEGER NOT NULL,
    bound      INTEGER NOT NULL,
    written_at REAL NOT NULL,
    body       BLOB NOT NULL
);

CREATE INDEX files_of_owner ON files (tenant, subject, size);
CREATE INDEX files_unbound ON files (written_at) WHERE bound = 0;

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

CREATE INDEX file_threads_of_file ON file_threads (file_no);
