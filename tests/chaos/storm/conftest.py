"""Notes which storms had too little processor time: `scripts/run_tests.py` runs only those a second time.

A storm that was starved ran out of time or struck too rarely, and no rule was broken. Everything else that
fails one, such as a violation, an answer that nobody expects or a server that ended by itself, fails the run.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from scripts.run_tests import STARVED
from tests.chaos.storm.fault_run import TooShort


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and is_starved(call.excinfo.value):
        cache = item.config.cache
        cache.set(STARVED, [*cache.get(STARVED, []), item.nodeid])
    return report


def is_starved(error: BaseException) -> bool:
    """A group is starved if all that failed in it is."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_starved(each) for each in error.exceptions)
    return isinstance(error, (TimeoutError, TooShort))
