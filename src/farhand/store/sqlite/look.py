"""Looks at a SQLite store from outside, also while a server has it. Writes nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from pathlib import Path

from farhand.store.draft.listed import RECORDS, unreadable_in
from farhand.store.facts import StoreFacts
from farhand.store.sqlite.file import APPLICATION_ID, latest_version


def look(path: str) -> StoreFacts:
    place = Path(os.path.realpath(Path(path).expanduser()))
    what = f"SQLite {sqlite3.sqlite_version}, {place}"
    latest = latest_version()
    if not place.exists():
        problem = None if place.parent.is_dir() else f"the folder {place.parent} does not exist"
        room = None if problem else _room(place)
        return StoreFacts(f"{what} (not made yet)", latest=latest, problem=problem, room=room)
    if not os.access(place, os.W_OK):
        return StoreFacts(what, latest=latest, problem="the file cannot be written")
    try:
        owner, version = _read(place)
    except sqlite3.Error as error:
        return StoreFacts(what, latest=latest, problem=f"the file cannot be read: {error}")
    problem = None if owner in (0, APPLICATION_ID) else "it is a database of another program"
    holder, room = _holder(place), _room(place)
    # tables of another version may lack what is asked for
    is_known = problem is None and version == latest
    unreadable = _unreadable(place) if is_known else ()
    return StoreFacts(
        what, version, latest, problem=problem, in_use_by=holder, room=room, unreadable=unreadable
    )


def _unreadable(place: Path) -> tuple[str, ...]:
    db = sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True, timeout=1.0)
    try:
        return unreadable_in(db.execute(RECORDS))
    finally:
        db.close()


def _room(place: Path) -> int:
    return shutil.disk_usage(place.parent).free


def _read(place: Path) -> tuple[int, int]:
    db = sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True, timeout=1.0)
    try:
        (owner,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
    finally:
        db.close()
    return owner, version


def _holder(place: Path) -> str | None:
    lock = place.with_name(place.name + ".lock")
    if not lock.exists():
        return None
    with lock.open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"process {held.read(20).decode(errors='replace').strip()}"
    return None
