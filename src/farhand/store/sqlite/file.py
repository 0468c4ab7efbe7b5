"""The file of a SQLite store: who has it, whether it can be one, and how it is opened or inspected.

Any problem with a path is one clear sentence at start.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from farhand.errors import BadSetting, StoreLocked
from farhand.store.health import ROOM_BYTES, StoreHealth
from farhand.store.records import unreadable_in
from farhand.store.sqlite.migrate import (
    check_ours,
    check_version,
    foreign_tables,
    latest_version,
    migrate,
    rewrite_header,
    stored_version,
)

WAL_PAGES = 4000
"""About 16 MiB of write-ahead log before a checkpoint: hot pages are copied once, and a restart reads it
quickly."""

CACHE_KIB = 32 * 1024

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}

RESTORE = "Restore it from a backup, or name another file."

MAKE_WRITABLE = "Make the file and its folder writable, or name another file."


class StoreFile:
    """An opened file, locked by this process until it is closed or the process ends."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self._path = path
        self._lock = lock
        self._trying = threading.Lock()
        self._inodes: dict[Path, int] = {}

    def connect(self) -> sqlite3.Connection:
        """Each thread has its own connection; another thread may close it."""
        db = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=5.0
        )
        try:
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        except sqlite3.Error:
            # not a database, for example
            db.close()
            raise
        return db

    def note_places(self) -> None:
        """For `is_in_place`: the file is there now."""
        lock = os.fstat(self._lock.fileno())
        self._inodes = {self._path: self._path.stat().st_ino, Path(self._lock.name): lock.st_ino}

    def is_in_place(self) -> bool:
        """False once the file or its lock was moved, removed or replaced: what is written then is in no file
        that the next process opens, or another process may write too."""
        try:
            return all(path.stat().st_ino == inode for path, inode in self._inodes.items())
        except OSError:
            return False

    def has_space(self) -> bool:
        """Tried out beside the store: a full disk, a quota and a process limit differ when asked for free
        space, but not when space is allocated. May wait for the disk."""
        if not hasattr(os, "posix_fallocate"):
            return shutil.disk_usage(self._path.parent).free >= ROOM_BYTES
        with self._trying:
            descriptor = self._lock.fileno()
            size = os.fstat(descriptor).st_size
            try:
                os.posix_fallocate(descriptor, size, ROOM_BYTES)
            except OSError as error:
                # a disk that cannot reserve space need not be full
                return error.errno not in _FULL
            finally:
                os.ftruncate(descriptor, size)
        return True

    def close(self) -> None:
        self._lock.close()


def open_file(path: str, *, as_is: bool = False) -> StoreFile:
    """Locks the file, initializes it if it is new, and upgrades its tables; `as_is` only locks it."""
    with _plain_words(path):
        # two names of one file are one store
        place = Path(os.path.realpath(Path(path).expanduser()))
        if as_is and not place.exists():
            raise BadSetting(f"There is no store '{place}'.", hint="Name it with --store.")
        _check_place(place)
        file = StoreFile(place, _lock(place))
        try:
            _check_version(file, place) if as_is else _prepare(file, place)
            file.note_places()
        except BaseException:
            file.close()
            raise
    return file


def _check_place(place: Path) -> None:
    if place.is_dir():
        raise BadSetting(f"The store '{place}' is a folder.", hint="Name a file in it.")
    if place.exists() and not place.is_file():
        raise BadSetting(f"The store '{place}' is not a file.", hint="Name an ordinary file.")
    if not place.parent.is_dir():
        raise BadSetting(f"The folder '{place.parent}' of the store does not exist.", hint="Create it first.")


def _lock(place: Path) -> IO[bytes]:
    """Held on a companion file, which the system releases however the process ends."""
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
            hint="Stop that server, or give this one another file: --store sqlite:///other.db.",
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()).encode())
    lock.flush()
    return lock


def _create(place: Path) -> None:
    """For its owner alone, whatever the umask: it holds chats. SQLite's files beside it get the same mode."""
    with suppress(FileExistsError):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _prepare(file: StoreFile, place: Path) -> None:
    _create(place)
    db = file.connect()
    try:
        check_ours(db, place)
        _use_write_ahead_log(db, place)
        migrate(db, place)
        # detects a read-only file here, not at the first append
        rewrite_header(db)
    finally:
        db.close()


def _check_version(file: StoreFile, place: Path) -> None:
    db = file.connect()
    try:
        check_ours(db, place)
        check_version(db, place)
    finally:
        db.close()


def _use_write_ahead_log(db: sqlite3.Connection, place: Path) -> None:
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise BadSetting(
            f"The store '{place}' is on a disk where SQLite cannot keep a write-ahead log.",
            hint="Use a local disk.",
        )


@contextmanager
def _plain_words(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError, sqlite3.Error) as error:
        what = error.strerror if isinstance(error, OSError) else str(error).removesuffix(".")
        raise BadSetting(
            f"The store '{path}' cannot be used: {what}.",
            hint=_next_step(error),
        ) from error


def _next_step(error: Exception) -> str:
    code, kind = getattr(error, "errno", None), error_kind(error)
    if code in _FULL or kind == sqlite3.SQLITE_FULL:
        return "Free space on its disk."
    if code in _NOT_WRITABLE or kind == sqlite3.SQLITE_READONLY:
        return MAKE_WRITABLE
    if kind == sqlite3.SQLITE_CORRUPT:
        return RESTORE
    return "Name a farhand store, or a new file in a folder that can be written."


def error_kind(error: Exception) -> int:
    """0 for an error that did not come from SQLite itself."""
    # the low byte is the kind, whatever the rest
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def inspect_file(path: str) -> StoreHealth:
    """From outside, even while a server has it open. Writes nothing."""
    place = Path(os.path.realpath(Path(path).expanduser()))
    what = f"SQLite {sqlite3.sqlite_version}, {place}"
    latest = latest_version()
    if not place.exists():
        problem = None if place.parent.is_dir() else f"the folder {place.parent} does not exist"
        free_bytes = None if problem else _free_bytes(place)
        return StoreHealth(f"{what} (not created yet)", latest=latest, problem=problem, free_bytes=free_bytes)
    if not os.access(place, os.W_OK):
        return StoreHealth(what, latest=latest, problem="the file cannot be written", hint=MAKE_WRITABLE)
    try:
        with closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            return _inspect(db, place, what)
    except sqlite3.DatabaseError as error:
        problem, hint = f"the file cannot be read: {error}", "Name a farhand store, or a new file."
        if error_kind(error) == sqlite3.SQLITE_NOTADB:
            problem = "the file is not an SQLite database"
        elif error_kind(error) == sqlite3.SQLITE_CORRUPT:
            problem, hint = f"the file is damaged: {error}", RESTORE
        return StoreHealth(what, latest=latest, problem=problem, hint=hint)


def _inspect(db: sqlite3.Connection, place: Path, what: str) -> StoreHealth:
    foreign, version, latest = foreign_tables(db), stored_version(db), latest_version()
    if foreign is not None:
        problem, hint = foreign
        return StoreHealth(what, version, latest, problem=f"the file {problem}", hint=hint)
    # tables of another version may lack the columns
    unreadable = unreadable_in(db.execute(RECORDS)) if version == latest else ()
    return StoreHealth(
        what, version, latest, in_use_by=_holder(place), free_bytes=_free_bytes(place), unreadable=unreadable
    )


def _free_bytes(place: Path) -> int:
    return shutil.disk_usage(place.parent).free


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


RECORDS = """
SELECT 'thread', thread_id, record FROM threads
UNION ALL SELECT 'call', call_id, record FROM calls
UNION ALL SELECT 'run', run_id, record FROM runs
UNION ALL SELECT 'client', client_id, record FROM clients"""
"""The records that a list may leave out, for `unreadable_in`."""
