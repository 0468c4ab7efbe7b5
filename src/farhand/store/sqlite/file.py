"""The file of a SQLite store: whose it is, whether it is ours, and which version its tables have.

Whatever is wrong with a path is one clear sentence at start. Must not know what is kept in the tables.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO

from farhand.errors import BadSetting, StoreLocked
from farhand.store.facts import ROOM_BYTES
from farhand.store.sqlite.sql import END_LEASES

APPLICATION_ID = 0x46415248
"""`FARH` in the file's header: a database of somebody else is never touched."""

WAL_PAGES = 4000
"""About 16 MiB of log before it is copied back: hot pages are copied once; a restart reads it in no time."""

CACHE_KIB = 32 * 1024

log = logging.getLogger("farhand.store")

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StoreFile:
    """An opened file, held by this process alone until it is closed or the process ends."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self._path = path
        self._lock = lock
        self._trying = threading.Lock()

    def connect(self) -> sqlite3.Connection:
        """Each thread that uses a connection has it to itself; who closes it may be another."""
        db = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=5.0
        )
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        return db

    def has_room(self) -> bool:
        """Tried out beside the store: a full disk, a quota and a limit of the process look different to
        whoever asks for free space, and alike to whoever takes it. May wait for the disk."""
        if not hasattr(os, "posix_fallocate"):
            return shutil.disk_usage(self._path.parent).free >= ROOM_BYTES
        with self._trying:
            descriptor = self._lock.fileno()
            size = os.fstat(descriptor).st_size
            try:
                os.posix_fallocate(descriptor, size, ROOM_BYTES)
            except OSError as error:
                # a disk that cannot reserve room is not one that has none
                return error.errno not in _FULL
            finally:
                os.ftruncate(descriptor, size)
        return True

    def close(self) -> None:
        self._lock.close()


def open_file(path: str, *, as_is: bool = False) -> StoreFile:
    """Locks the file, makes it ours if it is new, and brings its tables up to date; `as_is` only locks it."""
    with _plain_words(path):
        # two names of one file are one store
        place = Path(os.path.realpath(Path(path).expanduser()))
        if as_is and not place.exists():
            raise BadSetting(f"There is no store '{place}'.", hint="Name it with --store.")
        _check_place(place)
        file = StoreFile(place, _lock(place))
        try:
            _check_version(file, place) if as_is else _prepare(file, place)
        except BaseException:
            file.close()
            raise
    return file


def latest_version() -> int:
    return max(number for number, _ in _migrations())


def _check_place(place: Path) -> None:
    if place.is_dir():
        raise BadSetting(f"The store '{place}' is a folder.", hint="Name a file in it.")
    if place.exists() and not place.is_file():
        raise BadSetting(f"The store '{place}' is not a file.", hint="Name an ordinary file.")
    if not place.parent.is_dir():
        raise BadSetting(f"The folder '{place.parent}' of the store does not exist.", hint="Make it first.")


def _lock(place: Path) -> IO[bytes]:
    """Held on a companion file, which the system frees however the process ends."""
    lock = place.with_name(place.name + ".lock").open("a+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read(20).decode(errors="replace").strip()
        lock.close()
        who = f" (process {holder})" if holder.isdigit() else ""
        raise StoreLocked(
            f"The store '{place}' is in use by another farhand server{who}.",
            hint="Stop that one, or give this one another file.",
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()).encode())
    lock.flush()
    return lock


def _prepare(file: StoreFile, place: Path) -> None:
    db = file.connect()
    try:
        _check_ours(db, place)
        _keep_log(db, place)
        _migrate(db, place)
        # whoever held a run is gone: this process has the file to itself
        db.execute(END_LEASES)
        # nor will anybody send the rest of a file
        db.execute(
            "DELETE FROM file_pieces WHERE file_no IN ("
            " SELECT file_no FROM files WHERE bound = 0 AND arrived = 0)"
        )
        db.execute("DELETE FROM files WHERE bound = 0 AND arrived = 0")
    finally:
        db.close()


def _check_version(file: StoreFile, place: Path) -> None:
    db = file.connect()
    try:
        _check_ours(db, place)
        (stored,) = db.execute("PRAGMA user_version").fetchone()
    finally:
        db.close()
    latest = latest_version()
    if stored != latest:
        raise BadSetting(
            f"The store '{place}' has tables of version {stored}, and this farhand works with {latest}.",
            hint="Use the farhand that serves it, or start a server of the newer one first.",
        )


def _check_ours(db: sqlite3.Connection, place: Path) -> None:
    (owner,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != APPLICATION_ID and tables:
        raise BadSetting(f"'{place}' is a database of another program.", hint="Name another file.")


def _keep_log(db: sqlite3.Connection, place: Path) -> None:
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise BadSetting(
            f"The store '{place}' lies where SQLite cannot keep a write-ahead log.", hint="Use a local disk."
        )


def _migrate(db: sqlite3.Connection, place: Path) -> None:
    (stored,) = db.execute("PRAGMA user_version").fetchone()
    latest = latest_version()
    if stored > latest:
        raise BadSetting(
            f"The store '{place}' was written by a newer farhand ({stored}; this one knows {latest}).",
            hint="Use that farhand, or another file.",
        )
    if 0 < stored < latest:
        # a table that is rewritten may be large, and nobody is served meanwhile
        log.warning(
            "the store is being upgraded from version %d to %d: this may take a while", stored, latest
        )
    for number, sql in _migrations():
        if number > stored:
            _run_migration(db, number, sql)


def _run_migration(db: sqlite3.Connection, number: int, sql: str) -> None:
    """One transaction: a crash in the middle leaves the version before it."""
    marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
    try:
        db.executescript(f"BEGIN IMMEDIATE; {sql} {marks} COMMIT;")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _migrations() -> list[tuple[int, str]]:
    folder = files("farhand.store") / "migrations" / "sqlite"
    scripts = [script for script in folder.iterdir() if script.name.endswith(".sql")]
    return sorted((int(script.name[:4]), script.read_text()) for script in scripts)


@contextmanager
def _plain_words(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError, sqlite3.Error) as error:
        what = error.strerror if isinstance(error, OSError) else str(error).removesuffix(".")
        raise BadSetting(
            f"The store '{path}' cannot be used: {what}.",
            hint="Make room on its disk."
            if _is_full(error)
            else "Name a farhand store, or a new file in a folder that can be written.",
        ) from error


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in _FULL
    # the low byte is the kind, whatever the rest says of it
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
