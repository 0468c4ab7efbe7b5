"""A PgBouncer in front of a test's PostgreSQL, run by an unprivileged user and removed afterwards.

with running_pooler(cluster, mode="transaction") as port:
    address = cluster.address("some_schema", port=port)
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.postgres import Cluster, as_nobody, free_port

READY_WITHIN_SEC = 30
ALL = (
    "search_path", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "jit",
    "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout",
    "enable_seqscan", "enable_hashjoin", "enable_mergejoin", "plan_cache_mode", "synchronous_commit",
)  # fmt: skip


@contextmanager
def running_pooler(cluster: Cluster, *, mode: str, passed: tuple[str, ...] = ALL) -> Iterator[int]:
    """The port it answers on, on loopback. Of a session's settings it takes and ignores those `passed`."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    assert program is not None, "PgBouncer is missing; install it (Debian: apt install pgbouncer)"
    with tempfile.TemporaryDirectory(prefix="farhand-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        port = free_port()
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = host=127.0.0.1 port={cluster.port} user=farhand\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\npool_mode = {mode}\nmax_client_conn = 100\ndefault_pool_size = 10\n"
            f"ignore_startup_parameters = {','.join(passed)}\n"
        )
        configuration.chmod(0o644)
        process = subprocess.Popen(
            [program, "-q", str(configuration)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **as_nobody(),
        )  # fmt: skip
        try:
            _wait_until_it_answers(process, port)
            yield port
        finally:
            process.kill()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    pause = threading.Event()
    for _ in range(READY_WITHIN_SEC * 20):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return
        assert process.poll() is None, "PgBouncer did not start"
        pause.wait(0.05)
    raise AssertionError("PgBouncer did not answer in time")
