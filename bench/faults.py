"""Errors of a measurement and their descriptions: an error costs one figure, never the whole run."""

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
"""Raised by a missing tool, a server that fails, or a load client that finds a fault."""


def describe_fault(fault: BaseException) -> str:
    """One line about the error."""
    if isinstance(fault, FileNotFoundError) and fault.filename:
        text = f"'{fault.filename}' is missing here"
    elif isinstance(fault, AttributeError):
        text = f"this system does not provide what is needed ({fault})"
    else:
        text = f"{type(fault).__name__}: {fault}"
    return " ".join(text.split())[:300]
