"""Runs a server in its own process, on its own core. It knows how it is started, not what it serves."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from bench.dialects import post_request
from bench.machine import CACHE, ROOT, cores

START_WITHIN_SEC = 60.0
LOAD_WITHIN_SEC = 300.0

home = ContextVar("home", default=ROOT)
"""The tree whose farhand is measured; references and load are always ours."""

LENT = "bench/apps/lent.py"
"""Added to the tree of a revision whose own app lacks a measured feature; see `bench/comparison.py`."""

configurations: list[str] = []
"""What each farhand server reported at its start. Cleared before each figure."""


class Server:
    def __init__(self, process: subprocess.Popen[bytes], port: int, ready_after: float) -> None:
        self.process = process
        self.port = port
        self.ready_after = ready_after

    @property
    def pid(self) -> int:
        return self.process.pid

    def load(self, kind: str, **spec: object) -> dict[str, Any]:
        """The results of the load client, and the processor time of the server meanwhile."""
        return load([self], kind, **spec)


@contextmanager
def measured_in(tree: Path) -> Iterator[None]:
    """Inside the block, the farhand of this tree is measured."""
    before = home.set(tree)
    try:
        yield
    finally:
        home.reset(before)


def _variables(tree: Path) -> dict[str, str]:
    # its own sources precede the installed ones
    return {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'src'}"}


@contextmanager
def serving(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    core: int | None = None,
    is_farhand: bool = False,
) -> Iterator[Server]:
    """A server that listens on the port in its last argument, with these variables added to ours."""
    tree = home.get() if is_farhand else ROOT
    port = _free_port()
    begun = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", str(cores()[0] if core is None else core), *command, str(port)],
        cwd=tree,
        env={**_variables(tree), **(environment or {})},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield Server(process, port, _wait_until_ready(process, port) - begun)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def app(name: str, *options: str, on_load_core: bool = False) -> Iterator[Server]:
    """One of `bench/apps`; farhand's own reports its configuration. An app that only feeds a server runs on
    the core of the load."""
    module = "lent" if name == "whole" and (home.get() / LENT).exists() else name
    command = [sys.executable, "-m", f"bench.apps.{module}", *options]
    if name != "whole":
        with serving(command, core=cores()[1] if on_load_core else None) as server:
            yield server
        return
    with scratch() as folder, serving([*command, "--tell", str(folder / "told")], is_farhand=True) as server:
        configuration = (folder / "told").read_text()
        configurations.append(
            f"{configuration}, load on core {cores()[1]}; unsigned requests get {_unsigned(server.port)}"
        )
        yield server


def load(servers: Sequence[Server], kind: str, **spec: object) -> dict[str, Any]:
    """Runs the load client on the other core, against the first of these; the time of all servers counts."""
    spec = {
        "kind": kind,
        "port": servers[0].port,
        "ports": [each.port for each in servers],
        "pids": [each.pid for each in servers],
        **spec,
    }
    return run_alone("bench.load", json.dumps(spec), core=cores()[1])


def run_alone(module: str, *arguments: str, core: int | None = None) -> dict[str, Any]:
    """Runs a module in its own process and on its own core; its last printed line is the result."""
    where = cores()[0] if core is None else core
    tree = home.get() if core is None else ROOT
    if core is None:
        configurations.append(f"{module} in a process of its own on core {where}, without an HTTP server")
    done = subprocess.run(
        ["taskset", "-c", str(where), sys.executable, "-m", module, *arguments],
        cwd=tree,
        env=_variables(tree),
        stdout=subprocess.PIPE,
        timeout=LOAD_WITHIN_SEC,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the disk of the repository: a temporary folder may be in memory, where nothing is
    durable."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        yield Path(folder)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> float:
    """The time of its first response: a listening socket does not mean that the program is ready."""
    give_up = time.perf_counter() + START_WITHIN_SEC
    while (left := give_up - time.perf_counter()) > 0:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode} before it answered")
        if _answers(port, left):
            return time.perf_counter()
        # a socket that does not exist yet cannot be waited for
        time.sleep(0.002)
    raise TimeoutError("the server did not answer in time")


def _unsigned(port: int) -> str:
    """The status of the response to a request without credentials."""
    request = post_request("/api/tools/ack", "", {"toolCallId": "call_0", "status": "success"})
    with socket.create_connection(("127.0.0.1", port), timeout=START_WITHIN_SEC) as line:
        line.sendall(request.replace(b"authorization: Bearer \r\n", b""))
        return line.recv(12)[9:].decode(errors="replace")


def _answers(port: int, within: float) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=within) as line:
            line.sendall(post_request("/api/plain", "answerer", {}))
            return line.recv(5) == b"HTTP/"
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
