"""What may go wrong in a measurement, and how it is told: one figure less, never a lost run."""

from __future__ import annotations

import subprocess

FAULTS = (
    OSError,
    RuntimeError,
    LookupError,
    ValueError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    subprocess.SubprocessError,
)
"""What a machine without a tool, a server that fails and a load that finds a fault raise."""


def in_words(fault: BaseException) -> str:
    """One line; a name that only some systems have is said to be missing."""
    if isinstance(fault, FileNotFoundError) and fault.filename:
        told = f"'{fault.filename}' is missing here"
    elif isinstance(fault, AttributeError):
        told = f"this system cannot tell what is needed ({fault})"
    else:
        told = f"{type(fault).__name__}: {fault}"
    return " ".join(told.split())[:300]
