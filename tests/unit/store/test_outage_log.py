"""An outage is logged once, with its end, whatever succeeds in between."""

from __future__ import annotations

import logging

import pytest

from farhand.store import outage_log
from farhand.store.outage_log import QUIET_SEC, OutageLog

LOG = logging.getLogger("farhand.store")


def test_an_outage_is_one_line_and_its_end_is_another(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 0.0
    monkeypatch.setattr(outage_log, "monotonic", lambda: at)
    outages = OutageLog(LOG, "it works again")
    outages.note_success()
    for _ in range(3):
        outages.note_failure("it failed: %s", "full")
        at += QUIET_SEC
        # too soon: some things work though others do not
        outages.note_success()
    assert caplog.messages == ["it failed: full"]
    at += 0.1
    outages.note_success()
    outages.note_success()
    assert caplog.messages == ["it failed: full", "it works again"]
    outages.note_failure("it failed: %s", "full")
    assert caplog.messages[2:] == ["it failed: full"]


def test_an_error_that_nobody_expected_is_always_logged(caplog: pytest.LogCaptureFixture) -> None:
    outages = OutageLog(LOG, "it works again")
    for _ in range(2):
        outages.note_failure("it failed", trace=KeyError("planted"))
    assert caplog.text.count("KeyError: 'planted'") == 2
