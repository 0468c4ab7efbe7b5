-- What one commit says in a run is one row of its journal: the events as a JSON list, at the place of the last one.
-- A place is one number, the run's and the event's together, so that the table itself is in the order of journals
-- and a row is found by comparing numbers.
CREATE TABLE journals (
    place INTEGER PRIMARY KEY,
    at    REAL NOT NULL,
    body  BLOB NOT NULL
);

INSERT INTO journals (place, at, body)
SELECT run_no << 28 | seq, at, CAST('[' || CAST(body AS TEXT) || ']' AS BLOB) FROM events ORDER BY run_no, seq;

DROP TABLE events;

-- Only the last run of a thread may be active, and that one is found among the thread's runs.
DROP INDEX runs_one_active;
