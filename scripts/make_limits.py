"""Writes docs/reference/limits.md from the table in the code. A page that is out of date fails a test."""

from __future__ import annotations

from pathlib import Path

from farhand.server.limits_told import Group, Limit, groups

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "reference" / "limits.md"

HEAD = """\
# Limits

Everything that comes from outside is bounded, and whatever passes a bound is answered: with a status and a
reason in the words of its face, with a close code on a WebSocket, or with a Failure that the model is given.
Nothing is dropped silently, and nothing else that is under way is touched.

A name in the first column is a [setting](settings.md); the others are fixed, because a server that took more
could be made to stand still. How often something was refused is counted, for each face and each code, in
`app.traffic.refusals`.

This page is written by `make docs` from `farhand/server/limits_told.py`.
"""

TAIL = """
## Before a request is a request

`farhand run` also bounds what comes before a body: the head of a request may have 64 KiB (then 431) and
take 10 seconds, 16 requests and 64 KiB may be sent ahead of the answer before them, and 21 000 connections
may be open. Trailers may have 64 KiB, too (then the connection is reset); a request for a WebSocket may
have 100 headers of 8,000 bytes and no body (then 400). A peer that reads nothing for
`limits.stalled_after_sec` is reset. An app that is mounted elsewhere leaves these, and the size of a frame
on the wire, to the server that carries it.
"""

COLUMNS = "| limit | default | bounds | passed, it is answered |\n|---|---|---|---|\n"


def main() -> None:
    TARGET.write_text(page())
    print(f"docs: {TARGET.relative_to(ROOT)} written")


def page() -> str:
    return HEAD + "".join(map(_section, groups())) + TAIL


def _section(group: Group) -> str:
    rows = "\n".join(map(_row, group.limits))
    return f"\n## {group.title}\n\n{COLUMNS}{rows}\n"


def _row(limit: Limit) -> str:
    name = f"`{limit.setting}`" if limit.setting else "fixed"
    return f"| {name} | {limit.default} | {limit.what} | {limit.answer} |"


if __name__ == "__main__":
    main()
