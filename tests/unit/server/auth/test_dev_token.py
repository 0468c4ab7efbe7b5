"""The development token: where it is kept, and the code that signs a browser in once."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from farhand.server.auth import dev_token
from farhand.server.auth.dev_token import CODE_SEC, DevToken, kept_token
from tests.requirement import requirement


@requirement("demo:token-kept")
def test_a_kept_token_is_the_same_at_the_next_start_and_nobody_else_s(tmp_path: Path) -> None:
    path = tmp_path / "demo.db.token"
    token = kept_token(path)
    assert kept_token(path) == token
    assert path.stat().st_mode & 0o777 == 0o600
    assert DevToken(token).matches(token)


@requirement("demo:token-kept")
def test_a_token_that_others_may_have_seen_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "demo.db.token"
    token = kept_token(path)
    path.chmod(0o644)
    fresh = kept_token(path)
    assert fresh != token
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_or_nonsense_in_the_place_of_a_token_is_replaced(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("a-token-of-someone-else\n")
    elsewhere.chmod(0o600)
    path = tmp_path / "demo.db.token"
    path.symlink_to(elsewhere)
    assert kept_token(path) != "a-token-of-someone-else"
    assert elsewhere.read_text() == "a-token-of-someone-else\n"
    path.write_text("short")
    assert len(kept_token(path)) > 16


def test_where_nothing_can_be_kept_the_token_is_new(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "demo.db.token"
    assert kept_token(path) != kept_token(path)


def test_a_code_signs_in_once() -> None:
    token = DevToken()
    code = token.issue_code()
    assert not token.matches("a guess")
    assert token.matches(code)
    assert not token.matches(code)
    assert token.matches(token.token)


def test_a_code_is_worth_nothing_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    token = DevToken()
    code = token.issue_code()
    later = monotonic() + CODE_SEC
    monkeypatch.setattr(dev_token, "monotonic", lambda: later)
    assert not token.matches(code)
