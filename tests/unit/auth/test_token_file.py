"""Tokens in a file: whom they authenticate, and how soon they are revoked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

from farhand.auth import TokenFile, token_file
from farhand.auth.token_file import digest_of
from farhand.core.principal import Principal
from farhand.errors import BadSetting
from tests.requirement import requirement
from tests.unit.server.asgi_requests import visit

ADA = "ada-0123456789abcdef"
BOB = "bob-0123456789abcdef"


def entry(token: str, subject: str, more: str = "", key: str = "token") -> str:
    return f'[[token]]\n{key} = "{token}"\ntenant = "house"\nsubject = "{subject}"\n{more}\n'


def write(path: Path, text: str) -> None:
    """As a careful program does: a reader sees the old file or the new one."""
    fresh = path.with_suffix(".fresh")
    fresh.write_text(text)
    Path(fresh).replace(path)


def asking(*tokens: str, scheme: str = "Bearer") -> HTTPConnection:
    return HTTPConnection(visit([("authorization", f"{scheme} {token}") for token in tokens]))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    write(
        path, entry(ADA, "ada", 'scopes = ["chat", "inspect"]') + entry(digest_of(BOB), "bob", key="sha256")
    )
    return path


@requirement("auth:token-file")
def test_a_token_says_who_asks_and_what_they_may_do(path: Path) -> None:
    hook = TokenFile(path)
    assert hook(asking(ADA)) == Principal("house", "ada", frozenset({"chat", "inspect"}))
    assert hook(asking(BOB, scheme="bearer")) == Principal(
        "house", "bob", frozenset({"chat", "answer", "approve"})
    )


@requirement("auth:token-file")
@pytest.mark.parametrize("shown", ["", "x", ADA[:-1], ADA + "x", digest_of(BOB), "\xff" * 20])
def test_anything_else_is_nobody(path: Path, shown: str) -> None:
    assert TokenFile(path)(asking(shown)) is None


@requirement("auth:token-file")
def test_two_headers_another_scheme_and_none_are_nobody(path: Path) -> None:
    hook = TokenFile(path)
    assert hook(asking(ADA, BOB)) is None
    assert hook(asking(ADA, scheme="Basic")) is None
    assert hook(HTTPConnection(visit())) is None


@requirement("auth:token-file")
def test_a_token_taken_out_of_the_file_is_nobody_from_then_on(path: Path) -> None:
    hook = TokenFile(path)
    assert hook(asking(ADA)) is not None
    write(path, entry(BOB, "bob"))
    assert hook(asking(ADA)) is None
    assert hook(asking(BOB)) is not None


@requirement("auth:token-file")
@pytest.mark.parametrize("text", [None, "no = toml = at all", entry("short", "x"), '[[token]]\ntenant = "x"'])
def test_a_file_that_is_gone_or_broken_lets_nobody_in_and_says_so_without_tokens(
    path: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    hook = TokenFile(path)
    before = path.read_text()
    path.unlink() if text is None else write(path, text)
    assert hook(asking(ADA)) is None
    assert "all tokens are refused" in caplog.text
    assert "short" not in caplog.text.replace("too short", "")
    write(path, before)
    assert hook(asking(ADA)) is not None


@requirement("auth:token-file")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (entry("short-secret", "x"), "too short"),
        (entry(ADA, "x", 'scopes = ["root"]'), "no scope 'root'"),
        (entry(ADA, "x") + entry(ADA, "y"), "twice"),
        (entry(ADA, "x", 'sha256 = "0"'), "either `sha256` or `token`"),
        (entry("0" * 63, "x", key="sha256"), "invalid `sha256`"),
        (entry(ADA, "x", 'colour = "red"'), "is not valid"),
        ("[[token]", "is not valid"),
        ("a = " + "[" * 5_000, "is not valid"),
        (entry(ADA, ""), "no subject"),
        (entry(ADA, "x").replace("house", ""), "no tenant"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_at_the_start_without_repeating_a_token(
    path: Path, text: str, reason: str
) -> None:
    write(path, text)
    with pytest.raises(BadSetting) as refused:
        TokenFile(path)
    assert reason in str(refused.value)
    assert ADA not in str(refused.value)
    assert "short-secret" not in str(refused.value)


@requirement("auth:token-file")
def test_a_file_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="cannot be read"):
        TokenFile(tmp_path / "nothing.toml")


@requirement("auth:token-file")
def test_a_file_that_everybody_may_write_is_refused(path: Path) -> None:
    path.chmod(0o606)
    with pytest.raises(BadSetting, match="chmod o-w"):
        TokenFile(path)
    path.chmod(0o600)
    hook = TokenFile(path)
    path.chmod(0o602)
    assert hook(asking(ADA)) is None


@requirement("auth:token-file")
@pytest.mark.parametrize("fault", [RecursionError(), MemoryError(), PermissionError(13, "no"), KeyError("x")])
def test_whatever_goes_wrong_while_reading_nobody_comes_in_until_it_can_be_read_again(
    path: Path, fault: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hook = TokenFile(path)
    write(path, entry(BOB, "bob"))

    def broken(path: Path) -> Mapping[str, Principal]:
        raise fault

    with monkeypatch.context() as patched:
        patched.setattr(token_file, "read_tokens", broken)
        for _ in range(3):
            assert hook(asking(ADA)) is None
            assert hook(asking(BOB)) is None
    assert len(caplog.records) == 1
    # the file is the same as before, and nobody has touched it
    assert hook(asking(BOB)) is not None
    assert hook(asking(ADA)) is None
