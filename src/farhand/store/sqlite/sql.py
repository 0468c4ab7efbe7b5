"""The statements of a SQLite store: how records are looked up, and how a draft is written."""

from __future__ import annotations

PLACE_BITS = 28
"""Of a place in the journals, for the number of an event: as many as a run that speaks for months can say.
The bits above are its run's. Messages have places, too: theirs are below the bits of their thread."""

_first, _last = f"(run_no << {PLACE_BITS})", f"(run_no + 1 << {PLACE_BITS}) - 1"

# an event more does not write the run again: the journal itself tells how long it is
_last_seq = f"""
    max(last_seq, coalesce(
        (SELECT place - {_first} FROM journals WHERE place BETWEEN {_first} AND {_last}
         ORDER BY place DESC LIMIT 1), 0))
"""

RUN = f"""
    SELECT run_no, run_id, tenant, subject, thread_id, state, parked, step, fence, lease_until, {_last_seq},
           blockers, started_at, hold_for, ended_at, error
    FROM runs JOIN threads USING (thread_no)
"""

RUN_BY_ID = RUN + " WHERE run_id = ?"

LAST_RUN = RUN + " WHERE tenant = ? AND subject = ? AND thread_id = ? ORDER BY run_no DESC LIMIT 1"

COUNT_RUNS = """
    SELECT count(*) FROM runs JOIN threads USING (thread_no)
    WHERE tenant = ? AND subject = ? AND thread_id = ?
"""

_of_subject = "tenant = ?1 AND (?2 IS NULL OR subject = ?2)"

# in this order: by the time of active runs it would walk through those of other tenants
COUNT_RUNNING = f"""
    SELECT count(*) FROM threads CROSS JOIN runs USING (thread_no)
    WHERE {_of_subject} AND ended_at IS NULL AND state = 'running'
"""

MESSAGE_BYTES = f"""
    SELECT coalesce(sum(length(messages.body)), 0)
    FROM threads
        JOIN messages ON place BETWEEN thread_no << {PLACE_BITS} AND (thread_no + 1 << {PLACE_BITS}) - 1
    WHERE {_of_subject}
"""

# the last number that SQLite has stands for a page that is the first one
_before = """run_no < coalesce((
    SELECT run_no FROM runs JOIN threads USING (thread_no)
    WHERE run_id = ? AND tenant = ? AND subject = ?), 9223372036854775807)"""

RUNS = RUN + " WHERE tenant = ? AND subject = ? AND " + _before + " ORDER BY run_no DESC LIMIT ?"

# in the words of the indexes by time, which are found by them
_run_at, _call_at = "coalesce(ended_at, stray_at)", "coalesce(settled_at, deadline)"
_active_at = f"has_journal = 1 AND (ended_at IS NULL) = 1 AND {_run_at}"
_ended_at = f"has_journal = 1 AND (ended_at IS NULL) = 0 AND {_run_at}"
_due_at = f"(settled_at IS NULL) = 1 AND {_call_at}"
_settled_at = f"(settled_at IS NULL) = 0 AND {_call_at}"

STRAY_RUNS = RUN + f" WHERE {_active_at} <= ? ORDER BY {_run_at} LIMIT ?"

END_LEASES = f"UPDATE runs SET lease_until = 0, stray_at = 0 WHERE {_active_at} > 0"

THREADS = """
    SELECT body, thread_id, updated_at FROM threads WHERE tenant = ? AND subject = ?
    ORDER BY updated_at DESC, thread_id DESC LIMIT ?
"""

COUNT_THREADS = "SELECT count(*) FROM threads WHERE tenant = ? AND subject = ?"

THREADS_AFTER = """
    SELECT body, thread_id, updated_at FROM threads
    WHERE tenant = ? AND subject = ? AND (updated_at, thread_id) < (?, ?)
    ORDER BY updated_at DESC, thread_id DESC LIMIT ?
"""

MESSAGES = f"""
    SELECT messages.body
    FROM threads
        JOIN messages ON place BETWEEN thread_no << {PLACE_BITS} AND (thread_no + 1 << {PLACE_BITS}) - 1
    WHERE tenant = ? AND subject = ? AND thread_id = ?
    ORDER BY place LIMIT ?
"""

# as the first value of a statement
_in_thread = f"place BETWEEN ?1 << {PLACE_BITS} AND (?1 + 1 << {PLACE_BITS}) - 1"

CALLS_OF_RUN = """
    SELECT body FROM calls
    WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?)
        AND tenant = ? AND subject = ? AND (? IS NULL OR step = ?)
    ORDER BY call_no LIMIT ?
"""

OPEN_CALLS = """
    SELECT body, call_id FROM calls WHERE is_open = 1 AND tenant = ? AND subject = ? ORDER BY call_no LIMIT ?
"""

OPEN_CALLS_OF_THREAD = """
    SELECT body, call_id FROM calls WHERE is_open = 1 AND tenant = ? AND subject = ? AND thread_id = ?
    ORDER BY call_no LIMIT ?
"""

COUNT_OPEN = """
    SELECT count(*) FROM calls WHERE is_open = 1 AND tenant = ? AND subject = ? AND thread_id = ?
"""

COUNT_OPEN_OF_TENANT = "SELECT count(*) FROM calls WHERE is_open = 1 AND tenant = ?"

CLIENT_CALLS = """
    SELECT body FROM calls WHERE is_open = 1 AND tenant = ? AND subject = ? AND client_id = ?
    ORDER BY call_no LIMIT ?
"""

# what is in a body is looked for as it is written there; an input may hold the same, so this finds too much
DIRECT_CALLS = """
    SELECT body FROM calls
    WHERE is_open = 1 AND run_no IS NULL AND (
        request_id IS NULL
        OR instr(body, CAST('"executor":"server"' AS BLOB)) > 0
            AND (instr(body, CAST('"phase":"ready"' AS BLOB)) > 0
                OR instr(body, CAST('"phase":"taken"' AS BLOB)) > 0))
    ORDER BY call_no LIMIT ?
"""

EVENTS = f"""
    SELECT place - {_first}, journals.body, at
    FROM runs JOIN threads USING (thread_no) JOIN journals ON place > {_first} + ? AND place <= {_last}
    WHERE run_id = ? AND tenant = ? AND subject = ?
    ORDER BY place LIMIT ?
"""

DUE = f"""
    SELECT deadline, tenant, subject, call_id FROM calls
    WHERE {_due_at} < ? ORDER BY {_call_at} LIMIT ?
"""

FEED = f"""
    SELECT feed_no, feed.at, coalesce(journals.body, feed.body) AS told,
           coalesce(threads.thread_id, feed.thread_id), run_id, place - ({_first} + seq)
    FROM feed
        LEFT JOIN journals ON place = (
            SELECT min(place) FROM journals WHERE place BETWEEN {_first} + seq AND {_last})
        LEFT JOIN runs USING (run_no)
        LEFT JOIN threads USING (thread_no)
    WHERE feed.tenant = ? AND feed.subject = ? AND feed_no > ? AND told IS NOT NULL
    ORDER BY feed_no LIMIT ?
"""

FEED_SPAN = """
    SELECT coalesce((SELECT min(feed_no) FROM feed WHERE tenant = ?1 AND subject = ?2), 1),
           coalesce((SELECT max(feed_no) FROM feed WHERE tenant = ?1 AND subject = ?2), 0)
"""

THREAD = "SELECT body FROM threads WHERE tenant = ? AND subject = ? AND thread_id = ?"

CALL = "SELECT body FROM calls WHERE call_id = ?"

ASKING = "SELECT body FROM calls WHERE approval_id = ?"

REQUESTED = "SELECT body FROM calls WHERE tenant = ? AND subject = ? AND request_id = ?"

CLIENTS = "SELECT body, client_id FROM clients LIMIT ?"

TOOL = "SELECT body FROM tools WHERE version = ?"

UPDATE_THREAD = "UPDATE threads SET updated_at = ?, body = ? WHERE thread_no = ?"

INSERT_THREAD = """
    INSERT INTO threads (updated_at, body, thread_no, tenant, subject, thread_id) VALUES (?, ?, ?, ?, ?, ?)
"""

IS_SENT = f"SELECT 1 FROM messages WHERE place >> {PLACE_BITS} = ? AND message_id = ? AND is_sent = 1"

INSERT_MESSAGE = f"""
    INSERT INTO messages (place, message_id, is_sent, body) VALUES (
        coalesce((SELECT max(place) FROM messages WHERE {_in_thread}), ?1 << {PLACE_BITS}) + 1, ?2, ?3, ?4)
"""

FIND_MESSAGE = f"SELECT place FROM messages WHERE {_in_thread} AND message_id = ?2"

CUT_MESSAGES = f"DELETE FROM messages WHERE {_in_thread} AND place >= ?2"

UPDATE_RUN = """
    UPDATE runs SET last_seq = ?, state = ?, parked = ?, step = ?, fence = ?, lease_until = ?, blockers = ?
    WHERE run_no = ?
"""

UPDATE_RUN_WATCHED = """
    UPDATE runs SET last_seq = ?, state = ?, parked = ?, step = ?, fence = ?, lease_until = ?, blockers = ?,
        stray_at = nullif(?, ''), ended_at = nullif(?, ''), error = nullif(?, '')
    WHERE run_no = ?
"""

INSERT_RUN = """
    INSERT INTO runs (last_seq, state, parked, step, fence, lease_until, blockers, stray_at, ended_at, error,
        run_no, run_id, thread_no, started_at, hold_for)
    VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?, ?, ?, ?)
"""

UPDATE_CALL = "UPDATE calls SET version = ?, body = ? WHERE call_no = ?"

MOVE_CALL = """
    UPDATE calls SET version = ?, body = ?, is_open = ?, deadline = nullif(?, ''), settled_at = nullif(?, '')
    WHERE call_no = ?
"""

INSERT_CALL = """
    INSERT INTO calls (version, body, is_open, deadline, settled_at, call_no, run_no, call_id, tenant,
        subject, thread_id, step, approval_id, client_id, request_id)
    VALUES (?, ?, ?, nullif(?, ''), nullif(?, ''), ?, nullif(?, ''), ?, ?, ?, ?, ?,
        nullif(?, ''), nullif(?, ''), nullif(?, ''))
"""

INSERT_TOOL = "INSERT INTO tools (version, body) VALUES (?, ?)"

INSERT_EVENTS = "INSERT INTO journals (place, at, body) VALUES (?, ?, ?)"

INSERT_POINTER = "INSERT INTO feed (tenant, subject, feed_no, at, run_no, seq) VALUES (?, ?, ?, ?, ?, ?)"

ENDED_RUNS = f"SELECT run_no FROM runs WHERE {_ended_at} < ? LIMIT ?"

END_JOURNAL = f"UPDATE runs SET has_journal = 0, last_seq = {_last_seq} WHERE run_no = ?"

DELETE_JOURNAL = f"""
    DELETE FROM journals WHERE place BETWEEN (?1 << {PLACE_BITS}) AND (?1 + 1 << {PLACE_BITS}) - 1
"""

INSERT_NEWS = "INSERT INTO feed (tenant, subject, feed_no, at, thread_id, body) VALUES (?, ?, ?, ?, ?, ?)"

# calls of a run that goes on stay: it may still hand their outcomes to the model
_old_calls = f"""
    calls LEFT JOIN runs USING (run_no)
    WHERE {_settled_at} < ?1 AND (run_id IS NULL OR ended_at IS NOT NULL)
"""

DELETE_CALLS = f"DELETE FROM calls WHERE call_no IN (SELECT call_no FROM {_old_calls} LIMIT ?2)"

COUNT_OLD = f"""
    SELECT
        (SELECT count(*) FROM {_old_calls}),
        (SELECT count(*) FROM runs WHERE {_ended_at} < ?1),
        (SELECT count(*) FROM feed AS old WHERE at < ?1 AND feed_no < (
            SELECT max(feed_no) FROM feed WHERE tenant = old.tenant AND subject = old.subject)),
        (SELECT count(*) FROM files WHERE bound = 0 AND written_at < ?2 AND (written_at < ?1 OR arrived = 0))
"""
