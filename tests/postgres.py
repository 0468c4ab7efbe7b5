"""A PostgreSQL server for the tests: in a temporary folder, run by an unprivileged user, removed afterwards.

    def test_…(cluster: Cluster) -> None:
        store = await open_store(cluster.address("some_schema"))

One cluster serves all tests of a process; each test takes a schema of its own. A test that kills or stops the
database makes a cluster for itself: `with running_cluster() as cluster`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypedDict

READY_WITHIN_SEC = 60
_HOME = Path("/usr/lib/postgresql")
_CONFIGURATION = """
listen_addresses = '127.0.0.1'
max_connections = 200
# what is proven here survives the end of its processes, not of the machine
fsync = off
full_page_writes = off
shared_buffers = 64MB
log_min_messages = fatal
"""


class Cluster:
    """Made by `running_cluster`. The database answers on loopback and on a socket in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._schemas = count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, schema: str | None = None, *, port: int | None = None) -> str:
        """Of an empty store; `port` is of something between, such as a proxy."""
        name = schema or f"test_{os.getpid()}_{next(self._schemas)}"
        return f"postgresql://farhand@127.0.0.1:{port or self.port}/postgres?schema={name}"

    def start(self) -> None:
        """Returns once it answers."""
        log = (self.folder / "log.txt").open("ab")
        with log:
            self._process = subprocess.Popen(
                [_binary("postgres"), "-D", str(self._data), "-p", str(self.port), "-k", str(self.folder)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **as_nobody(),
            )  # fmt: skip
        self._wait_until_it_answers()

    def stop(self, sig: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends sessions and stops, SIGQUIT stops as a crash would."""
        process = self._running()
        process.send_signal(sig)
        process.wait(READY_WITHIN_SEC)

    def kill(self) -> None:
        """As a power cut would: nothing is tidied up."""
        self.stop(signal.SIGQUIT)

    def restart(self, sig: signal.Signals = signal.SIGQUIT) -> None:
        self.stop(sig)
        self.start()

    @property
    def pid(self) -> int:
        """Of the process that has all the others of the database as its children."""
        return self._running().pid

    def keep_what_is_written(self) -> None:
        """The tests' database forgets at a power cut; one that is measured must not."""
        for command in ("ALTER SYSTEM SET fsync = on", "ALTER SYSTEM SET full_page_writes = on"):
            self.query(command)
        self.query("SELECT pg_reload_conf()")

    def query(self, command: str) -> None:
        """As an operator would."""
        _run([_binary("psql"), "-q", "-c", command, self.address().partition("?")[0]])

    def cpu_sec(self) -> float:
        """What all of its processes have computed so far."""
        own = self.pid
        ticks = 0
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == own:
                ticks += int(fields[11]) + int(fields[12])
            elif status.parent.name == str(own):
                # its own, and that of children that have ended
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def make(self) -> None:
        # every user may pass through the folder, since the database is run by another one
        self.folder.chmod(0o755)
        self._data.mkdir()
        owner = as_nobody()
        if "user" in owner:
            account = pwd.getpwnam(str(owner["user"]))
            for folder in (self.folder, self._data):
                os.chown(folder, account.pw_uid, account.pw_gid)
        _run([
            _binary("initdb"), "-D", str(self._data), "-U", "farhand", "-A", "trust",
            "-E", "UTF8", "--locale=C", "--no-sync",
        ])  # fmt: skip
        with (self._data / "postgresql.conf").open("a") as configuration:
            configuration.write(_CONFIGURATION)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "start() comes first"
        return self._process

    def _wait_until_it_answers(self) -> None:
        asking = [_binary("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "farhand"]
        pause = threading.Event()
        for _ in range(READY_WITHIN_SEC * 20):
            if subprocess.run(asking, check=False).returncode == 0:
                return
            assert self._running().poll() is None, (self.folder / "log.txt").read_text()
            pause.wait(0.05)
        raise AssertionError("the database did not answer in time")


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="farhand-pg-"))
    cluster = Cluster(folder)
    try:
        cluster.make()
        cluster.start()
        yield cluster
        cluster.stop()
    finally:
        process = cluster._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGQUIT)
            process.wait(READY_WITHIN_SEC)
        shutil.rmtree(folder, ignore_errors=True)


def _binary(name: str) -> str:
    """Debian keeps them out of the PATH, by version."""
    homes = sorted(_HOME.glob("*/bin"), key=lambda home: int(home.parent.name.partition(".")[0]))
    found = next((str(home / name) for home in reversed(homes) if (home / name).exists()), None)
    found = found or shutil.which(name)
    assert found is not None, f"{name} is missing; install PostgreSQL (Debian: apt install postgresql)"
    return found


class _Account(TypedDict, total=False):
    user: str
    group: int
    extra_groups: list[int]


def as_nobody() -> _Account:
    """PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in names else "nobody"
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", check=False, **as_nobody()
    )
    assert done.returncode == 0, done.stderr.decode()


def free_port() -> int:
    """Reserved until this process ends: no connection and no other server gets it before its server starts,
    or while that is being restarted."""
    reserved = socket.socket()
    # it never listens, so a server may, if it sets this as well
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    port: int = reserved.getsockname()[1]
    reserved.detach()
    return port
