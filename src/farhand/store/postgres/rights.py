"""What a database lets this user do, asked without doing it: known before a server starts."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from farhand.store.draft.records import Columns
from farhand.store.postgres.line import Line
from farhand.store.postgres.migrate import latest_version, missing_right, stored_version
from farhand.store.postgres.place import Place


class Wrong(Struct, frozen=True):
    told: str
    do: str


async def what_is_wrong(line: Line, place: Place) -> Wrong | None:
    """The first thing that would keep a server from this store; None if nothing would."""
    return (
        await _not_written_to(line) or await _schema_closed(line, place) or await _tables_closed(line, place)
    )


async def _not_written_to(line: Line) -> Wrong | None:
    [row] = await line.fetch("SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'")
    if row[0]:
        return Wrong("it is a standby, which nobody can write to", "Name the primary.")
    if row[1]:
        return Wrong(
            "this user may only read: default_transaction_read_only is on",
            "Switch it off for this user, or name another one.",
        )
    return None


async def _schema_closed(line: Line, place: Place) -> Wrong | None:
    """No schema, or none that this user may look into and make tables in."""
    found: Sequence[Columns] = await line.fetch(SCHEMA, place.schema)
    may_make_schemas, is_there, may_use, may_make_tables, tables, is_ours = found[0]
    if not is_there:
        return None if may_make_schemas else _denied("database", place, place.name.split(" ")[0])
    if tables and not is_ours:
        return Wrong("it has tables of another program", "Name another schema.")
    # tables that are there and up to date need no right to make others
    if not may_use or not (may_make_tables or is_ours):
        return _denied("schema", place, place.schema)
    return None


async def _tables_closed(line: Line, place: Place) -> Wrong | None:
    """Tables of ours that this user may not work with, or may not bring up to date."""
    found: Sequence[Columns] = await line.fetch(CLOSED, place.schema)
    kinds: dict[str, str] = {row[0]: row[1] for row in found}
    for kind in ("table", "sequence"):
        if kind in kinds:
            return _denied(kind, place, kinds[kind])
    version = await stored_version(line, place)
    if version is None or version >= latest_version():
        return None
    [row] = await line.fetch(FOREIGN, place.schema)
    if row[0] is not None:
        told = f"its tables must be brought up to date: must be owner of table {row[0]}"
        return Wrong(told, missing_right(told, place.schema))
    [row] = await line.fetch("SELECT has_schema_privilege($1, 'CREATE')", place.schema)
    return None if row[0] else _denied("schema", place, place.schema)


def _denied(kind: str, place: Place, name: str) -> Wrong:
    """In the database's own words, so that both ways of finding out say the same."""
    told = f"permission denied for {kind} {name}"
    return Wrong(told, missing_right(told, place.schema))


SCHEMA = """
    SELECT has_database_privilege(current_database(), 'CREATE'), ours.oid IS NOT NULL,
        has_schema_privilege(ours.oid, 'USAGE'), has_schema_privilege(ours.oid, 'CREATE'),
        (SELECT count(*) FROM pg_tables WHERE schemaname = $1),
        EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'farhand_version')
    FROM (SELECT) AS once LEFT JOIN pg_namespace AS ours ON nspname = $1
"""

CLOSED = """
    SELECT CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, min(relname)
    FROM pg_class JOIN pg_namespace AS ours ON ours.oid = relnamespace
    WHERE nspname = $1 AND CASE relkind
        WHEN 'S' THEN NOT has_sequence_privilege(pg_class.oid, 'USAGE')
        WHEN 'r' THEN NOT (
            has_table_privilege(pg_class.oid, 'SELECT')
            -- which version it is, a server that finds the newest only reads
            AND (relname = 'farhand_version' OR (
                has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
                AND has_table_privilege(pg_class.oid, 'DELETE'))))
        ELSE false END
    GROUP BY 1
"""

FOREIGN = """
    SELECT min(tablename) FROM pg_tables WHERE schemaname = $1 AND NOT pg_has_role(tableowner, 'USAGE')
"""
