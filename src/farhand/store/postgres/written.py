"""What is written: the statement that takes a draft. `$1` has the rows of each table as JSON, `$2` the bodies
that they point into.
"""

from __future__ import annotations


def _rows(table: str, columns: str) -> str:
    """What `$1` has under that name, as a table in its order. A body takes two places: where it begins, and
    its length."""
    parts: list[str] = []
    place = 0
    for column in columns.split(", "):
        name, kind = column.split()
        if kind == "bytea":
            parts.append(f"substring($2::bytea FROM (r->>{place})::int FOR (r->>{place + 1})::int) AS {name}")
        else:
            parts.append(f"(r->>{place})::{kind} AS {name}")
        place += 2 if kind == "bytea" else 1
    each = f"jsonb_array_elements($1::jsonb->'{table}') WITH ORDINALITY AS each (r, place)"
    # of parts of ours alone, like all below
    return f"(SELECT {', '.join(parts)} FROM {each} ORDER BY place) AS new"


def _insert(table: str, columns: str, *, of: str | None = None) -> str:
    """Columns with their types; `of` is the name in `$1` if it is another."""
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    return f"INSERT INTO {table} ({names}) SELECT {names} FROM {_rows(of or table, columns)}"


_CHANGING = (
    "run_no bigint, state text, parked bool, step bigint, fence bigint, lease_until float8, last_seq bigint, "
    "blockers bigint, ended_at float8, error text, stray_at float8"
)

_WHOLE_RUN = (
    f"{_CHANGING}, run_id text, tenant text, subject text, thread_id text, started_at float8, hold_for float8"
)

_MOVED_CALL = "call_id text, version bigint, body bytea, is_open bool, deadline float8, settled_at float8"

_WHOLE_CALL = (
    f"{_MOVED_CALL}, run_no bigint, tenant text, subject text, thread_id text, step bigint, "
    "approval_id text, client_id text, request_id text"
)

_NEW_THREAD = "tenant text, subject text, thread_id text, thread_no bigint, updated_at float8, body bytea"

_FEED = (
    "tenant text, subject text, back bigint, at float8, run_no bigint, seq bigint, thread_id text, body bytea"
)

UPDATE_RUNS = f"""
    UPDATE runs SET state = new.state, parked = new.parked, step = new.step, fence = new.fence,
        lease_until = new.lease_until, last_seq = new.last_seq, blockers = new.blockers,
        ended_at = new.ended_at, error = new.error, stray_at = new.stray_at
    FROM {_rows("moved_runs", _CHANGING)} WHERE runs.run_no = new.run_no
"""
"""Without bodies."""

# the last part is run first: all that another transaction may have to be waited for comes in the same order,
# what is new, then what moves, then the numbers of the feeds, since an owner's other writers wait from there
# to the end of the transaction
WRITE = f"""
    WITH signed AS (
        INSERT INTO writers (name, batch) SELECT $1::jsonb->>'writer', ($1::jsonb->>'batch')::bigint
        WHERE ($1::jsonb->>'batch')::bigint > 0
        ON CONFLICT (name) DO UPDATE SET batch = excluded.batch, at = now()
    ), ends AS (
        {_insert("feed_ends", "tenant text, subject text, last_no bigint", of="ends")}
        ON CONFLICT (tenant, subject) DO UPDATE SET last_no = feed_ends.last_no + excluded.last_no
        RETURNING tenant, subject, last_no
    ), feed_told AS (
        INSERT INTO feed (tenant, subject, feed_no, at, run_no, seq, thread_id, body)
        SELECT tenant, subject, last_no - back, at, run_no, seq, thread_id, body
        FROM {_rows("feed", _FEED)} JOIN ends USING (tenant, subject)
    ), events_said AS (
        {_insert("events", "run_no bigint, seq bigint, at float8, body bytea")}
    ), calls_moved AS (
        UPDATE calls SET version = new.version, body = new.body, is_open = new.is_open,
            deadline = new.deadline, settled_at = new.settled_at
        FROM {_rows("moved_calls", _MOVED_CALL)} WHERE calls.call_id = new.call_id
    ), runs_moved AS (
        {UPDATE_RUNS}
    ), tools_added AS (
        {_insert("tools", "version text, body bytea")} ON CONFLICT DO NOTHING
    ), calls_added AS (
        {_insert("calls", _WHOLE_CALL)}
    ), runs_added AS (
        {_insert("runs", _WHOLE_RUN)}
    ), messages_added AS (
        {_insert("messages", "thread_no bigint, message_id text, body bytea")}
    ), threads_added AS (
        {_insert("threads", _NEW_THREAD)}
    ), threads_used AS (
        UPDATE threads SET updated_at = new.updated_at, body = new.body
        FROM {_rows("used_threads", "thread_no bigint, updated_at float8, body bytea")}
        WHERE threads.thread_no = new.thread_no
    )
    SELECT pg_notify($1::jsonb->>'channel', note)
    FROM jsonb_array_elements_text($1::jsonb->'notes') AS note
"""
