"""Environments for other libraries, created when they are first needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.machine import CACHE

SERVER = ("fastapi==0.162.4", "uvicorn[standard]==0.54.0")
PEERS = {
    "pydantic_ai": ("pydantic-ai-slim==2.66.0", *SERVER),
    "langgraph": ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2", *SERVER),
}
INSTALL_WITHIN_SEC = 600


def command(peer: str, *options: str) -> list[str] | str:
    """The command that starts its server; a sentence if it cannot be installed here."""
    home = CACHE / "peers" / peer
    python = home / "bin" / "python"
    stamp = home / "installed"
    wanted = "\n".join(PEERS[peer])
    if not stamp.exists() or stamp.read_text() != wanted:
        why = _install(home, python, PEERS[peer])
        if why is not None:
            return f"{peer} could not be installed: {why}"
        stamp.write_text(wanted)
    return [str(python), str(Path(__file__).parent / f"{peer}_server.py"), *options]


def _install(home: Path, python: Path, packages: tuple[str, ...]) -> str | None:
    steps = (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "-q", *packages],
    )
    for step in steps:
        try:
            subprocess.run(step, capture_output=True, text=True, check=True, timeout=INSTALL_WITHIN_SEC)
        except subprocess.TimeoutExpired:
            return "it took too long"
        except subprocess.CalledProcessError as error:
            said = [line for line in error.stderr.splitlines() if line.strip()]
            return said[-1] if said else f"pip ended with {error.returncode}"
    return None
