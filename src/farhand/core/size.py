"""A number of bytes as readable text. Pure."""

from __future__ import annotations

KIB, MIB, GIB = 1024, 1024**2, 1024**3


def size_in_words(count: int) -> str:
    """`1 MiB` for a round limit, `20.1 MB` for the size of an upload, `812 bytes` for a small one."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    if count >= 1_000_000:
        return f"{count / 1_000_000:,.1f} MB"
    return f"{count:,} bytes"
