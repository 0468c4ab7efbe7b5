"""What is read. Every statement that names an owner has it first: `$1` the tenant, `$2` the subject."""

from __future__ import annotations

RUN_COLUMNS = """run_no, run_id, tenant, subject, thread_id, state, parked, step, fence, lease_until,
    last_seq, blockers, started_at, hold_for, ended_at, error"""

# of parts of ours alone, like the others below
ANY_RUN = f"SELECT {RUN_COLUMNS} FROM runs"

_OWN = " WHERE tenant = $1 AND subject = $2"


def _each_asked(*columns: str) -> str:
    """For what many ask for at once: a row for each key in `$1`, found or not, in their order. The keys are
    JSON: as the planner cannot tell how many there are, it plans such a statement once and not each time."""
    parts = ", ".join(f"key->>{place}" for place in range(len(columns)))
    each = "jsonb_array_elements($1::jsonb) WITH ORDINALITY AS each (key, place)"
    names = ", ".join((*columns, "place"))
    return f"FROM (SELECT {parts}, place FROM {each}) AS asked ({names}) ORDER BY place"


_OWNED = _each_asked("tenant", "subject", "id")

THREAD = "SELECT body FROM threads WHERE tenant = $1 AND subject = $2 AND thread_id = $3"

THREADS = """
    SELECT body, thread_id, updated_at FROM threads WHERE tenant = $1 AND subject = $2
    ORDER BY updated_at DESC, thread_id DESC LIMIT $3
"""

COUNT_RUNNING = """
    SELECT count(*) FROM runs
    WHERE ended_at IS NULL AND state = 'running' AND tenant = $1 AND ($2::text IS NULL OR subject = $2)
"""

MESSAGE_BYTES = """
    SELECT coalesce(sum(octet_length(messages.body)), 0)::bigint
    FROM threads JOIN messages USING (thread_no)
    WHERE tenant = $1 AND ($2::text IS NULL OR subject = $2)
"""

COUNT_THREADS = "SELECT count(*) FROM threads WHERE tenant = $1 AND subject = $2"

THREADS_AFTER = """
    SELECT body, thread_id, updated_at FROM threads
    WHERE tenant = $1 AND subject = $2 AND (updated_at, thread_id) < ($3, $4)
    ORDER BY updated_at DESC, thread_id DESC LIMIT $5
"""

MESSAGES = f"""
    SELECT ARRAY(
        SELECT body FROM messages
        WHERE thread_no = (
            SELECT thread_no FROM threads
            WHERE tenant = asked.tenant AND subject = asked.subject AND thread_id = asked.id)
        ORDER BY message_no)
    {_OWNED}
"""

RUN = f"""
    SELECT ARRAY(
        SELECT ROW({RUN_COLUMNS}) FROM runs
        WHERE tenant = asked.tenant AND subject = asked.subject AND run_id = asked.id)
    {_OWNED}
"""

LAST_RUN = ANY_RUN + _OWN + " AND thread_id = $3 ORDER BY run_no DESC LIMIT 1"

COUNT_RUNS = "SELECT count(*) FROM runs WHERE tenant = $1 AND subject = $2 AND thread_id = $3"

_BEFORE = "SELECT run_no FROM runs WHERE tenant = $1 AND subject = $2 AND run_id = $3"

RUNS = ANY_RUN + _OWN + f" AND run_no < coalesce(({_BEFORE}), {2**63 - 1}) ORDER BY run_no DESC LIMIT $4"

_NOW = "coalesce($1::float8, extract(epoch FROM clock_timestamp())::float8)"

_STRAY = f" WHERE stray_at <= {_NOW} AND run_id <> ALL($2::text[]) ORDER BY stray_at LIMIT $3"

STRAY_RUNS = ANY_RUN + _STRAY

# what another worker has in hand at this moment is left to it, and what is found here is found nowhere else
# for a while; whether a run is claimed is another matter, and does not ask for this time
RESERVE_STRAYS = (
    # of parts of ours alone
    f"WITH found AS (SELECT run_no FROM runs {_STRAY} FOR UPDATE SKIP LOCKED), reserved AS ("
    f" UPDATE runs SET stray_at = {_NOW} + $4::float8 FROM found WHERE runs.run_no = found.run_no"
    f" RETURNING runs.run_no) {ANY_RUN} WHERE run_no IN (SELECT run_no FROM reserved)"
)

CALL = f"""
    SELECT ARRAY(
        SELECT body FROM calls
        WHERE tenant = asked.tenant AND subject = asked.subject AND call_id = asked.id)
    {_OWNED}
"""

ASKING = "SELECT body FROM calls WHERE tenant = $1 AND subject = $2 AND approval_id = $3"

REQUESTED = "SELECT body FROM calls WHERE tenant = $1 AND subject = $2 AND request_id = $3"

CALLS_OF_RUN = f"""
    SELECT ARRAY(
        SELECT body FROM calls
        WHERE tenant = asked.tenant AND subject = asked.subject
            AND run_no = (SELECT run_no FROM runs WHERE run_id = asked.id)
            AND (asked.step IS NULL OR step = asked.step::bigint)
        ORDER BY call_no)
    {_each_asked("tenant", "subject", "id", "step")}
"""

OPEN_CALLS = """
    SELECT body, call_id FROM calls
    WHERE is_open AND tenant = $1 AND subject = $2 AND ($3::text IS NULL OR thread_id = $3) ORDER BY call_no
"""

COUNT_OPEN = f"""
    SELECT (
        SELECT count(*) FROM calls
        WHERE is_open AND tenant = asked.tenant AND subject = asked.subject AND thread_id = asked.id)
    {_OWNED}
"""

COUNT_OPEN_OF_TENANT = "SELECT count(*) FROM calls WHERE is_open AND tenant = $1"

CLIENT_CALLS = """
    SELECT body FROM calls WHERE is_open AND tenant = $1 AND subject = $2 AND client_id = $3 ORDER BY call_no
"""

CLIENTS = """
    SELECT body, client_id FROM clients WHERE $1::text IS NULL OR (tenant = $1 AND subject = $2)
    ORDER BY tenant, subject, client_id
"""

TOOL = f"""
    SELECT ARRAY(SELECT body FROM tools WHERE version = asked.version) {_each_asked("version")}
"""

EVENTS = """
    SELECT seq, events.body, at FROM events JOIN runs USING (run_no)
    WHERE tenant = $1 AND subject = $2 AND run_id = $3 AND seq > $4 ORDER BY seq LIMIT $5
"""

FEED = """
    SELECT feed_no, feed.at, coalesce(events.body, feed.body), coalesce(runs.thread_id, feed.thread_id),
        run_id
    FROM feed
        LEFT JOIN events USING (run_no, seq)
        LEFT JOIN runs USING (run_no)
    WHERE feed.tenant = $1 AND feed.subject = $2 AND feed_no > $3
        AND coalesce(events.body, feed.body) IS NOT NULL
    ORDER BY feed_no LIMIT $4
"""

FEED_SPAN = """
    SELECT coalesce((SELECT min(feed_no) FROM feed WHERE tenant = $1 AND subject = $2), 1),
           coalesce((SELECT max(feed_no) FROM feed WHERE tenant = $1 AND subject = $2), 0)
"""

# what is in a body is looked for as it is written there; an input may hold the same, so this finds too much
DIRECT_CALLS = """
    SELECT body FROM calls
    WHERE is_open AND run_no IS NULL AND (
        request_id IS NULL
        OR position('"executor":"server"'::bytea IN body) > 0
            AND (position('"phase":"ready"'::bytea IN body) > 0
                OR position('"phase":"taken"'::bytea IN body) > 0))
    ORDER BY call_no
"""

DUE = """
    SELECT deadline, tenant, subject, call_id FROM calls
    WHERE is_open AND deadline < $1 ORDER BY deadline LIMIT $2
"""
