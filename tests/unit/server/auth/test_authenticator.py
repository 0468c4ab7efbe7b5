"""Who is authenticated, as whom, and how everyone else is refused."""

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
from farhand.server.auth import authenticator as authenticator_module
from farhand.server.auth.authenticator import Authenticate, Authenticator
from tests.requirement import requirement
from tests.unit.server.asgi_requests import visit

ADA = Principal("house", "ada")


@pytest.fixture
def auth() -> Authenticator:
    return Authenticator()


def bearer(token: str | None, scheme: str = "Bearer") -> Scope:
    return visit({"authorization": f"{scheme} {token}"}, method="POST")


def with_cookie(cookie: str) -> Scope:
    return visit({"cookie": cookie, "origin": "http://127.0.0.1:8787"}, method="POST")


def keyed(*keys: str) -> Authenticator:
    """An authenticator whose hook knows these keys."""

    def check(request: HTTPConnection) -> Principal | None:
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        return Principal("house", shown) if shown in keys else None

    return Authenticator(authenticate=check)


async def refusal(auth: Authenticator, scope: Scope, needs: str = "chat") -> FarhandError:
    with pytest.raises(FarhandError) as refused:
        await auth.admit(scope, needs)
    return refused.value


@requirement("auth:token")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_token_gives_a_program_every_scope(scheme: str, auth: Authenticator) -> None:
    for needs in SCOPES:
        assert await auth.admit(bearer(auth.token, scheme), needs) == Principal("local", "me", SCOPES)


@requirement("auth:token")
async def test_anything_else_is_not_the_token(auth: Authenticator) -> None:
    assert auth.token is not None
    for shown in ("", auth.token[:-1], auth.token + "x", auth.token.swapcase(), "ä" * 43):
        assert isinstance(await refusal(auth, bearer(shown)), SignInNeeded)
    for scope in (
        visit(),
        visit({"authorization": f"Basic {auth.token}"}),
        visit({"authorization": auth.token}),
    ):
        assert isinstance(await refusal(auth, scope), SignInNeeded)


@requirement("auth:token")
async def test_the_token_in_the_address_of_a_request_is_not_a_credential(auth: Authenticator) -> None:
    assert isinstance(await refusal(auth, visit(query=f"token={auth.token}")), SignInNeeded)


def test_every_authenticator_has_its_own_token_unless_one_is_set() -> None:
    one, other = Authenticator(), Authenticator()
    assert one.token != other.token
    one.token = "chosen-by-a-script"
    assert one.token == "chosen-by-a-script"


@pytest.mark.parametrize(
    "token", ["short", "x" * 300, "has blanks in it, many", "ümlaut-ümlaut-ümlaut", "line\nfeed-line-feed"]
)
def test_a_token_that_is_too_easy_or_cannot_be_sent_is_refused(token: str, auth: Authenticator) -> None:
    with pytest.raises(BadSetting) as refused:
        auth.token = token
    assert token not in str(refused.value)


@requirement("auth:cookie")
async def test_signing_in_gives_a_cookie_that_authenticates_a_browser(auth: Authenticator) -> None:
    assert auth.token is not None
    header = auth.sign_in(visit(), auth.token)[0].decode()
    cookie, *attributes = [part.strip() for part in header.split(";")]
    assert cookie.startswith("farhand_8787=")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert auth.token not in header
    assert await auth.admit(with_cookie(f"theme=dark; {cookie}; x=y"), "chat") == Principal(
        "local", "me", SCOPES
    )


@requirement("approval:same-sign-in")
async def test_each_sign_in_has_an_id_that_scripts_can_read_and_that_is_no_credential(
    auth: Authenticator,
) -> None:
    assert auth.token is not None
    names = [auth.sign_in(visit(), auth.token)[1].decode() for _ in range(2)]
    assert all(name.startswith("farhand_8787_sign_in=") for name in names)
    assert names[0] != names[1]
    assert all("HttpOnly" not in name and "SameSite=Strict" in name for name in names)
    assert isinstance(await refusal(auth, with_cookie(names[0].partition(";")[0])), SignInNeeded)


@requirement("auth:cookie")
async def test_the_cookie_of_another_server_or_port_is_refused(auth: Authenticator) -> None:
    assert auth.token is not None
    other = Authenticator()
    assert other.token is not None
    stranger = other.sign_in(visit(), other.token)[0].decode().partition(";")[0]
    assert isinstance(await refusal(auth, with_cookie(stranger)), SignInNeeded)
    own = auth.sign_in(visit(), auth.token)[0].decode().partition(";")[0]
    assert isinstance(await refusal(auth, with_cookie(own.replace("8787", "8788"))), SignInNeeded)
    auth.port = 9000
    assert isinstance(await refusal(auth, with_cookie(own)), SignInNeeded)


@requirement("auth:cookie")
async def test_the_cookie_stays_valid_after_a_restart_with_the_same_token() -> None:
    before, after = Authenticator(), Authenticator()
    before.token = after.token = "chosen-by-a-script"
    cookie = before.sign_in(visit(), "chosen-by-a-script")[0].decode().partition(";")[0]
    assert await after.admit(with_cookie(cookie), "chat") == Principal("local", "me", SCOPES)


@requirement("auth:cookie")
async def test_a_wrong_token_gives_no_cookie_and_counts_as_a_failed_sign_in(auth: Authenticator) -> None:
    for _ in range(10):
        with pytest.raises(SignInNeeded):
            auth.sign_in(visit(), "wrong")
    with pytest.raises(TooMany):
        auth.sign_in(visit(), "wrong")
    assert auth.token is not None
    assert auth.sign_in(visit(), auth.token)


async def test_with_a_hook_there_is_no_token_and_nothing_to_sign_in_with() -> None:
    auth = keyed("ada")
    assert auth.token is None
    with pytest.raises(SignInNeeded, match="its own sign-in"):
        auth.sign_in(visit(), "anything")


@requirement("auth:token")
async def test_open_needs_no_token_but_every_other_rule_holds(auth: Authenticator) -> None:
    auth.open = True
    assert await auth.admit(visit(method="POST"), "chat") == Principal("local", "me", SCOPES)
    for scope in (
        visit({"origin": "https://evil.example"}, method="POST"),
        visit({"sec-fetch-site": "cross-site"}),
        visit(host="evil.example"),
        visit(client="10.0.0.7"),
    ):
        assert isinstance(await refusal(auth, scope), NotAllowed)


@requirement("auth:origin")
async def test_a_page_from_another_origin_is_refused_before_its_credential_is_checked(
    auth: Authenticator,
) -> None:
    scope = visit({"origin": "https://evil.example", "authorization": f"Bearer {auth.token}"})
    assert "--allow-origin https://evil.example" in str(await refusal(auth, scope))
    auth.allow(origins=["https://evil.example"])
    await auth.admit(scope, "chat")


@requirement("auth:hook")
async def test_a_hook_may_be_sync_or_async() -> None:
    async def check(request: HTTPConnection) -> Principal | None:
        await asyncio.sleep(0)
        return ADA if request.query_params.get("key") == "ada" else None

    auth = Authenticator(authenticate=check)
    assert await auth.admit(visit(query="key=ada", client="10.0.0.7"), "chat") == ADA
    assert isinstance(await refusal(auth, visit(query="key=eve")), SignInNeeded)
    assert await keyed("ada").admit(bearer("ada"), "chat") == ADA


@requirement("auth:hook")
async def test_a_scope_that_the_principal_does_not_have_is_refused() -> None:
    reader = Authenticator(authenticate=lambda _: Principal("house", "eve", frozenset({"chat"})))
    await reader.admit(visit(), "chat")
    refused = await refusal(reader, visit(), "approve")
    assert (type(refused), "'approve'" in str(refused)) == (NotAllowed, True)


@requirement("auth:hook")
@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        (True, "returned bool, not a Principal or None"),
        ("ada", "returned str, not a Principal or None"),
        ({"tenant": "house"}, "returned dict, not a Principal or None"),
        (Principal("house", 7), "a Principal whose subject must be a str, not int"),  # type: ignore[arg-type]
        (Principal("house", "ada", "chat"), "a Principal whose scopes must be a set, not str"),  # type: ignore[arg-type]
        (
            Principal("house", "ada", frozenset({"chat", "aprove"})),
            "'aprove', which does not exist; did you mean `approve`?",
        ),
        (Principal("house", "ada\0"), "a Principal whose subject is too long"),
        (Principal("\0", "ada"), "a Principal whose tenant is too long"),
        (Principal("house", "\ud800"), "a Principal whose subject is too long"),
        (Principal("house", "ada", claims={"a": object()}), "claims must be a JSON object"),
    ],
)
async def test_an_invalid_result_of_a_hook_authenticates_nobody(
    answer: object, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    auth = Authenticator(authenticate=lambda _: answer)  # type: ignore[arg-type, return-value]
    refused = await refusal(auth, visit())
    assert type(refused) is SignInDown
    assert logged in caplog.text
    assert "house" not in caplog.text + str(refused)


@requirement("auth:hook")
@pytest.mark.parametrize(
    ("status", "kind"), [(401, SignInNeeded), (403, NotAllowed), (500, SignInDown), (302, SignInDown)]
)
async def test_a_hook_may_refuse_with_an_http_exception(status: int, kind: type[FarhandError]) -> None:
    def check(_: HTTPConnection) -> Principal | None:
        raise HTTPException(status, detail="an inner secret")

    refused = await refusal(Authenticator(authenticate=check), visit())
    assert type(refused) is kind
    assert "secret" not in str(refused)


@requirement("auth:hook")
async def test_a_hook_may_raise_our_own_refusals() -> None:
    def check(_: HTTPConnection) -> Principal | None:
        raise NotAllowed("Your plan has ended.")

    assert str(await refusal(Authenticator(authenticate=check), visit())) == "Your plan has ended."


@requirement("auth:hook")
async def test_a_misspelled_argument_in_a_hook_is_explained_in_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def check(_: HTTPConnection) -> Principal | None:
        return Principal(tennant="acme", subject="ada")  # type: ignore[call-arg]

    refused = await refusal(Authenticator(authenticate=check), visit())
    assert (type(refused), "tennant" in str(refused)) == (SignInDown, False)
    assert "no argument `tennant`; did you mean `tenant`?" in caplog.text


@requirement("auth:hook")
async def test_a_hook_that_never_returns_times_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(_: HTTPConnection) -> Principal | None:
        await asyncio.Event().wait()
        return None

    monkeypatch.setattr(authenticator_module, "HOOK_WITHIN_SEC", 0.01)
    with caplog.at_level(logging.ERROR):
        assert type(await refusal(Authenticator(authenticate=check), visit())) is SignInDown
    assert "did not return" in caplog.text


@requirement("auth:failed-sign-ins")
async def test_the_eleventh_wrong_token_in_a_minute_is_too_many_and_the_right_one_still_works(
    auth: Authenticator,
) -> None:
    for _ in range(10):
        assert isinstance(await refusal(auth, bearer("wrong")), SignInNeeded)
    refused = await refusal(auth, bearer("wrong"))
    assert isinstance(refused, TooMany)
    assert 1 <= refused.retry_after <= 60
    await auth.admit(bearer(auth.token), "chat")
    # a tab that was left open has nothing to do with guessing
    assert isinstance(await refusal(auth, with_cookie("farhand_8787=old")), SignInNeeded)


@requirement("auth:failed-sign-ins")
async def test_after_too_many_failures_the_hook_is_not_called_and_accepted_credentials_still_work() -> None:
    auth = keyed("ada", "ben")
    await auth.admit(bearer("ada"), "chat")
    for number in range(10):
        assert isinstance(await refusal(auth, bearer(f"guess-{number}")), SignInNeeded)
    assert isinstance(await refusal(auth, bearer("ben")), TooMany)
    await auth.admit(bearer("ada"), "chat")
    # one good credential is no licence to guess others
    assert isinstance(await refusal(auth, bearer("ben")), TooMany)


@requirement("auth:failed-sign-ins")
async def test_a_valid_credential_does_not_reset_the_count_of_failures() -> None:
    auth = keyed("ada")
    for number in range(10):
        assert isinstance(await refusal(auth, bearer(f"guess-{number}")), SignInNeeded)
        await auth.admit(bearer("ada"), "chat") if number < 9 else None
    assert isinstance(await refusal(auth, bearer("another")), TooMany)


def said_401(_: HTTPConnection) -> Principal | None:
    raise HTTPException(401)


def said_no(_: HTTPConnection) -> Principal | None:
    raise SignInNeeded("No.")


def looked_up(request: HTTPConnection) -> Principal | None:
    known: dict[str, Principal] = {}
    return known[request.headers["authorization"]]


@requirement("auth:failed-sign-ins")
@pytest.mark.parametrize("hook", [said_401, said_no, looked_up])
async def test_failures_are_counted_however_the_hook_refuses(hook: Authenticate) -> None:
    auth = Authenticator(authenticate=hook)
    for number in range(10):
        assert not isinstance(await refusal(auth, bearer(f"guess-{number}")), TooMany)
    assert isinstance(await refusal(auth, bearer("another")), TooMany)


@requirement("auth:hook")
async def test_a_hook_that_raises_is_a_refusal_and_one_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def check(request: HTTPConnection) -> Principal | None:
        raise ValueError(f"bad: {request.headers['authorization']}")

    refused = await refusal(Authenticator(authenticate=check), bearer("an-inner-secret"))
    assert (type(refused), status_of(refused)) == (SignInDown, 503)
    assert [each.exc_info for each in caplog.records] == [None]
    assert "ValueError in test_authenticator.py" in caplog.text
    assert "an-inner-secret" not in caplog.text + str(refused)


@requirement("auth:failed-sign-ins")
async def test_a_request_without_a_credential_is_not_counted_as_a_failure() -> None:
    auth = keyed("ada")
    for _ in range(30):
        assert isinstance(await refusal(auth, visit()), SignInNeeded)
    await auth.admit(bearer("ada"), "chat")


async def test_the_number_of_remembered_credentials_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authenticator_module, "_MAX_ACCEPTED", 3)
    auth = keyed(*"abcdef")
    for key in "abcdef":
        await auth.admit(bearer(key), "chat")
    assert len(auth._accepted) == 3


@requirement("runs:drain")
async def test_during_shutdown_everybody_is_refused(auth: Authenticator) -> None:
    auth.close()
    assert auth.closed
    assert isinstance(await refusal(auth, bearer(auth.token)), ShuttingDown)


async def test_without_a_known_port_the_cookie_is_named_for_port_0(auth: Authenticator) -> None:
    assert auth.token is not None
    assert auth.sign_in({**visit(), "server": None}, auth.token)[0].startswith(b"farhand_0=")
