"""What a person sees while a call is under way: a line that moves, and what the tool says of it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from farhand.cli.lines import plain
from farhand.cli.remote import Remote

LISTENS_WITHIN_SEC = 2.0


@contextmanager
def waiting_for(tool: str, to: Remote, request_id: str) -> Iterator[None]:
    """Gone when the answer is there. Into a pipe, a line for each thing that is said."""
    console = Console(stderr=True)
    # what a tool says is text, whatever brackets are in it
    words = TextColumn("waiting for {task.description}", markup=False)
    columns = (SpinnerColumn(), words, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        line = progress.add_task(tool)

        def show(text: str) -> None:
            if console.is_terminal:
                progress.update(line, description=f"{tool}: {text}")
            else:
                _write(f"{tool}: {text}")

        if not console.is_terminal:
            _write(f"waiting for {tool} …")
        _listen(to, request_id, show)
        yield


def _listen(to: Remote, request_id: str, show: Callable[[str], None]) -> None:
    """Returns when the server listens, or does not want to: then the line just moves."""
    ready = threading.Event()

    def follow() -> None:
        try:
            for told in to.happenings():
                ready.set()
                if told.get("type") == "call-progressed" and told.get("requestId") == request_id:
                    show(plain(str(told.get("text"))))
        except (OSError, HTTPException, ValueError):
            # whoever asks for the call itself is told what is wrong
            pass
        finally:
            ready.set()

    threading.Thread(target=follow, daemon=True).start()
    ready.wait(LISTENS_WITHIN_SEC)


def _write(text: str) -> None:
    sys.stderr.write(f"farhand: {text}\n")
    sys.stderr.flush()
