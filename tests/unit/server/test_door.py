"""The door: who is let in, as whom, and what everybody else is told."""

from __future__ import annotations

import asyncio
import logging

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Scope

from farhand.core.principal import SCOPES, Principal
from farhand.errors import (
    BadSetting,
    FarhandError,
    NotAllowed,
    ShuttingDown,
    SignInDown,
    SignInNeeded,
    TooMany,
)
from farhand.faces.base import status_of
from farhand.server import door as door_module
from farhand.server.door import Authenticate, Door
from tests.requirement import requirement
from tests.unit.server.visits import visit

ADA = Principal("house", "ada")


@pytest.fixture
def door() -> Door:
    return Door()


def bearer(token: str | None, scheme: str = "Bearer") -> Scope:
    return visit({"authorization": f"{scheme} {token}"}, method="POST")


def with_cookie(cookie: str) -> Scope:
    return visit({"cookie": cookie, "origin": "http://127.0.0.1:8787"}, method="POST")


def keyed(*keys: str) -> Door:
    """A door whose hook knows these keys, and counts nothing else."""

    def check(request: HTTPConnection) -> Principal | None:
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        return Principal("house", shown) if shown in keys else None

    return Door(authenticate=check)


async def refusal(door: Door, scope: Scope, needs: str = "chat") -> FarhandError:
    with pytest.raises(FarhandError) as refused:
        await door.admit(scope, needs)
    return refused.value


@requirement("door:token")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_token_lets_a_program_in_with_every_scope(scheme: str, door: Door) -> None:
    for needs in SCOPES:
        assert await door.admit(bearer(door.token, scheme), needs) == Principal("local", "me", SCOPES)


@requirement("door:token")
async def test_anything_else_is_not_the_token(door: Door) -> None:
    assert door.token is not None
    for shown in ("", door.token[:-1], door.token + "x", door.token.swapcase(), "ä" * 43):
        assert isinstance(await refusal(door, bearer(shown)), SignInNeeded)
    for scope in (
        visit(),
        visit({"authorization": f"Basic {door.token}"}),
        visit({"authorization": door.token}),
    ):
        assert isinstance(await refusal(door, scope), SignInNeeded)


@requirement("door:token")
async def test_the_token_in_the_address_of_a_request_is_not_a_credential(door: Door) -> None:
    assert isinstance(await refusal(door, visit(query=f"token={door.token}")), SignInNeeded)


def test_every_door_has_another_token_unless_one_is_chosen() -> None:
    one, other = Door(), Door()
    assert one.token != other.token
    one.token = "chosen-by-a-script"
    assert one.token == "chosen-by-a-script"


@pytest.mark.parametrize(
    "token", ["short", "x" * 300, "has blanks in it, many", "ümlaut-ümlaut-ümlaut", "line\nfeed-line-feed"]
)
def test_a_token_that_is_too_easy_or_cannot_be_sent_is_refused(token: str, door: Door) -> None:
    with pytest.raises(BadSetting) as refused:
        door.token = token
    assert token not in str(refused.value)


@requirement("door:cookie")
async def test_signing_in_gives_a_cookie_that_lets_a_browser_in(door: Door) -> None:
    assert door.token is not None
    header = door.sign_in(visit(), door.token)[0].decode()
    cookie, *attributes = [part.strip() for part in header.split(";")]
    assert cookie.startswith("farhand_8787=")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert door.token not in header
    assert await door.admit(with_cookie(f"theme=dark; {cookie}; x=y"), "chat") == Principal(
        "local", "me", SCOPES
    )


@requirement("approval:same-sign-in")
async def test_each_sign_in_has_a_name_that_scripts_of_the_page_can_read_and_that_opens_nothing(
    door: Door,
) -> None:
    assert door.token is not None
    names = [door.sign_in(visit(), door.token)[1].decode() for _ in range(2)]
    assert all(name.startswith("farhand_8787_sign_in=") for name in names)
    assert names[0] != names[1]
    assert all("HttpOnly" not in name and "SameSite=Strict" in name for name in names)
    assert isinstance(await refusal(door, with_cookie(names[0].partition(";")[0])), SignInNeeded)


@requirement("door:cookie")
async def test_the_cookie_of_another_server_or_another_port_lets_nobody_in(door: Door) -> None:
    assert door.token is not None
    other = Door()
    assert other.token is not None
    stranger = other.sign_in(visit(), other.token)[0].decode().partition(";")[0]
    assert isinstance(await refusal(door, with_cookie(stranger)), SignInNeeded)
    own = door.sign_in(visit(), door.token)[0].decode().partition(";")[0]
    assert isinstance(await refusal(door, with_cookie(own.replace("8787", "8788"))), SignInNeeded)
    door.port = 9000
    assert isinstance(await refusal(door, with_cookie(own)), SignInNeeded)


@requirement("door:cookie")
async def test_the_cookie_holds_after_a_restart_with_the_same_token() -> None:
    before, after = Door(), Door()
    before.token = after.token = "chosen-by-a-script"
    cookie = before.sign_in(visit(), "chosen-by-a-script")[0].decode().partition(";")[0]
    assert await after.admit(with_cookie(cookie), "chat") == Principal("local", "me", SCOPES)


@requirement("door:cookie")
async def test_a_wrong_token_gives_no_cookie_and_counts_as_a_failed_sign_in(door: Door) -> None:
    for _ in range(10):
        with pytest.raises(SignInNeeded):
            door.sign_in(visit(), "wrong")
    with pytest.raises(TooMany):
        door.sign_in(visit(), "wrong")
    assert door.token is not None
    assert door.sign_in(visit(), door.token)


async def test_with_a_hook_there_is_no_token_and_nothing_to_sign_in_with() -> None:
    door = keyed("ada")
    assert door.token is None
    with pytest.raises(SignInNeeded, match="its own sign-in"):
        door.sign_in(visit(), "anything")


@requirement("door:open")
async def test_open_needs_no_token_but_every_other_rule_holds(door: Door) -> None:
    door.open = True
    assert await door.admit(visit(method="POST"), "chat") == Principal("local", "me", SCOPES)
    for scope in (
        visit({"origin": "https://evil.example"}, method="POST"),
        visit({"sec-fetch-site": "cross-site"}),
        visit(host="evil.example"),
        visit(client="10.0.0.7"),
    ):
        assert isinstance(await refusal(door, scope), NotAllowed)


@requirement("door:origin")
async def test_a_page_from_elsewhere_is_refused_before_its_credential_is_looked_at(door: Door) -> None:
    scope = visit({"origin": "https://evil.example", "authorization": f"Bearer {door.token}"})
    assert "--allow-origin https://evil.example" in str(await refusal(door, scope))
    door.allow(origins=["https://evil.example"])
    await door.admit(scope, "chat")


@requirement("door:hook")
async def test_the_hook_decides_sync_or_async() -> None:
    async def check(request: HTTPConnection) -> Principal | None:
        await asyncio.sleep(0)
        return ADA if request.query_params.get("key") == "ada" else None

    door = Door(authenticate=check)
    assert await door.admit(visit(query="key=ada", client="10.0.0.7"), "chat") == ADA
    assert isinstance(await refusal(door, visit(query="key=eve")), SignInNeeded)
    assert await keyed("ada").admit(bearer("ada"), "chat") == ADA


@requirement("door:hook")
async def test_a_scope_that_the_principal_does_not_have_is_refused() -> None:
    reader = Door(authenticate=lambda _: Principal("house", "eve", frozenset({"chat"})))
    await reader.admit(visit(), "chat")
    refused = await refusal(reader, visit(), "approve")
    assert (type(refused), "'approve'" in str(refused)) == (NotAllowed, True)


@requirement("door:hook")
@pytest.mark.parametrize(
    "answer",
    [True, "ada", {"tenant": "house"}, Principal("house", 7), Principal("house", "ada", "chat"),  # type: ignore[arg-type]
     Principal("house", "ada\0"), Principal("\0", "ada"), Principal("house", "\ud800")],
)  # fmt: skip
async def test_a_hook_that_answers_nonsense_lets_nobody_in(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    door = Door(authenticate=lambda _: answer)  # type: ignore[arg-type, return-value]
    refused = await refusal(door, visit())
    assert type(refused) is SignInDown
    assert "not a Principal" in caplog.text
    assert "house" not in str(refused)


@requirement("door:hook")
@pytest.mark.parametrize(
    ("status", "kind"), [(401, SignInNeeded), (403, NotAllowed), (500, SignInDown), (302, SignInDown)]
)
async def test_a_hook_may_say_no_as_web_frameworks_do(status: int, kind: type[FarhandError]) -> None:
    def check(_: HTTPConnection) -> Principal | None:
        raise HTTPException(status, detail="an inner secret")

    refused = await refusal(Door(authenticate=check), visit())
    assert type(refused) is kind
    assert "secret" not in str(refused)


@requirement("door:hook")
async def test_a_hook_may_raise_our_own_refusals() -> None:
    def check(_: HTTPConnection) -> Principal | None:
        raise NotAllowed("Your plan has ended.")

    assert str(await refusal(Door(authenticate=check), visit())) == "Your plan has ended."


@requirement("door:hook")
async def test_a_hook_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(_: HTTPConnection) -> Principal | None:
        await asyncio.Event().wait()
        return None

    monkeypatch.setattr(door_module, "HOOK_WITHIN_SEC", 0.01)
    with caplog.at_level(logging.ERROR):
        assert type(await refusal(Door(authenticate=check), visit())) is SignInDown
    assert "did not answer" in caplog.text


@requirement("door:failed-sign-ins")
async def test_the_eleventh_wrong_token_in_a_minute_is_too_many_and_the_right_one_is_still_let_in(
    door: Door,
) -> None:
    for _ in range(10):
        assert isinstance(await refusal(door, bearer("wrong")), SignInNeeded)
    refused = await refusal(door, bearer("wrong"))
    assert isinstance(refused, TooMany)
    assert 1 <= refused.retry_after <= 60
    await door.admit(bearer(door.token), "chat")
    # a tab that was left open has nothing to do with guessing
    assert isinstance(await refusal(door, with_cookie("farhand_8787=old")), SignInNeeded)


@requirement("door:failed-sign-ins")
async def test_a_guesser_is_not_asked_about_any_more_and_locks_out_nobody_who_is_in() -> None:
    door = keyed("ada", "ben")
    await door.admit(bearer("ada"), "chat")
    for number in range(10):
        assert isinstance(await refusal(door, bearer(f"guess-{number}")), SignInNeeded)
    assert isinstance(await refusal(door, bearer("ben")), TooMany)
    await door.admit(bearer("ada"), "chat")
    # one good credential is no licence to guess others
    assert isinstance(await refusal(door, bearer("ben")), TooMany)


@requirement("door:failed-sign-ins")
async def test_a_good_credential_between_the_guesses_does_not_begin_the_count_anew() -> None:
    door = keyed("ada")
    for number in range(10):
        assert isinstance(await refusal(door, bearer(f"guess-{number}")), SignInNeeded)
        await door.admit(bearer("ada"), "chat") if number < 9 else None
    assert isinstance(await refusal(door, bearer("another")), TooMany)


def said_401(_: HTTPConnection) -> Principal | None:
    raise HTTPException(401)


def said_no(_: HTTPConnection) -> Principal | None:
    raise SignInNeeded("No.")


def looked_up(request: HTTPConnection) -> Principal | None:
    known: dict[str, Principal] = {}
    return known[request.headers["authorization"]]


@requirement("door:failed-sign-ins")
@pytest.mark.parametrize("hook", [said_401, said_no, looked_up])
async def test_guesses_are_counted_in_whichever_way_the_hook_says_no(hook: Authenticate) -> None:
    door = Door(authenticate=hook)
    for number in range(10):
        assert not isinstance(await refusal(door, bearer(f"guess-{number}")), TooMany)
    assert isinstance(await refusal(door, bearer("another")), TooMany)


@requirement("door:hook")
async def test_a_hook_that_raises_is_a_no_in_words_and_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def check(request: HTTPConnection) -> Principal | None:
        raise ValueError(f"bad: {request.headers['authorization']}")

    refused = await refusal(Door(authenticate=check), bearer("an-inner-secret"))
    assert (type(refused), status_of(refused)) == (SignInDown, 503)
    assert [each.exc_info for each in caplog.records] == [None]
    assert "ValueError in test_door.py" in caplog.text
    assert "an-inner-secret" not in caplog.text + str(refused)


@requirement("door:failed-sign-ins")
async def test_asking_without_any_credential_is_no_guess() -> None:
    door = keyed("ada")
    for _ in range(30):
        assert isinstance(await refusal(door, visit()), SignInNeeded)
    await door.admit(bearer("ada"), "chat")


async def test_who_was_let_in_once_is_remembered_for_a_bounded_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door_module, "_REMEMBERED", 3)
    door = keyed(*"abcdef")
    for key in "abcdef":
        await door.admit(bearer(key), "chat")
    assert len(door._good) == 3


@requirement("door:shutting-down")
async def test_a_closed_door_lets_nobody_in(door: Door) -> None:
    door.close()
    assert door.closed
    assert isinstance(await refusal(door, bearer(door.token)), ShuttingDown)


async def test_without_a_known_port_the_cookie_is_named_for_none(door: Door) -> None:
    assert door.token is not None
    assert door.sign_in({**visit(), "server": None}, door.token)[0].startswith(b"farhand_0=")
