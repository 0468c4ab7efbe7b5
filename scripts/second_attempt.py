"""What fails is run once more, alone. Owns what counts as failed; must not know who runs the tests.

Tests with real processes, browsers and databases can starve on a machine that others use, too. What fails a
second time, with the machine to itself, is broken; what does not is named as unsteady, to be looked at. More
than a few failures are no accident: then nothing is run again.
"""

from __future__ import annotations

from collections.abc import Callable

FEW = 3
FAILED = 1


def with_second_attempt(
    run: Callable[[], int], failed: Callable[[], list[str]], run_again: Callable[[], int]
) -> int:
    """The exit code of a run, or of the second attempt at the few tests that failed in it."""
    code = run()
    names = failed()
    if code != FAILED or not 0 < len(names) <= FEW:
        return code
    print(f"tests: {len(names)} failed; run once more, alone:", *names, sep="\n  ", flush=True)
    code = run_again()
    if code == 0:
        print("tests: UNSTEADY, failed once and passed alone:", *names, sep="\n  ", flush=True)
    return code
