-- A thread's messages lie together, as a run's journal does: a place is one number, the thread's and the message's. Only
-- a name that its sender chose may come twice, so only those are in an index; of older messages nobody noted whose
-- name it is.
ALTER TABLE messages RENAME TO scattered_messages;

CREATE TABLE messages (
    place      INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    is_sent    INTEGER NOT NULL,
    body       BLOB NOT NULL
);

INSERT INTO messages (place, message_id, is_sent, body)
SELECT thread_no << 28 | row_number() OVER (PARTITION BY thread_no ORDER BY message_no), message_id, 1, body
FROM scattered_messages ORDER BY thread_no, message_no;

DROP TABLE scattered_messages;

CREATE UNIQUE INDEX messages_sent ON messages (place >> 28, message_id) WHERE is_sent = 1;

-- One index has both: what is over, by the time of its end, and behind it what is not, by the time when somebody has to
-- look at it. What ends leaves one for the other, and with few open things they share a page. Each begins with an
-- expression, which only those find who ask by time: a column would draw questions about open calls away from the index
-- of their tenant.
DROP INDEX calls_due;
DROP INDEX calls_settled;
CREATE INDEX calls_by_time ON calls (settled_at IS NULL, coalesce(settled_at, deadline));

DROP INDEX runs_stray;
DROP INDEX runs_ended;
CREATE INDEX runs_by_time ON runs (ended_at IS NULL, coalesce(ended_at, stray_at))
    WHERE has_journal = 1 AND coalesce(ended_at, stray_at) IS NOT NULL;
