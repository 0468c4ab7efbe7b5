"""Runs a file as `python -W error file` does, in a forked process: without the time that imports take."""

from __future__ import annotations

import runpy
import sys
import warnings
from pathlib import Path


def main() -> None:
    program = sys.argv[1]
    sys.argv = [program]
    sys.path.insert(0, str(Path(program).parent))
    warnings.simplefilter("error")
    runpy.run_path(program, run_name="__main__")
