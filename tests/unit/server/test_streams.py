"""Open streams: they are counted, released and re-authenticated in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from starlette.requests import HTTPConnection

from farhand.core.principal import Principal
from farhand.core.settings import Limits
from farhand.errors import TooMany
from farhand.server import reauth as recheck_module
from farhand.server.auth.authenticator import Authenticator
from farhand.server.reauth import Reauthenticator
from farhand.server.streams import OpenStream, StreamRegistry
from tests.requirement import requirement
from tests.unit.server.asgi_requests import visit

ADA, BOB, EVE = Principal("house", "ada"), Principal("house", "bob"), Principal("other", "ada")


class Scene:
    """An authenticator whose hook the test controls, streams, and a clock the test moves."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.now = 0.0
        self.cut: list[str] = []
        self.asked = 0
        self.when_asked: Callable[[], None] = lambda: None
        self.answers: dict[str, object] = {}
        self.auth = Authenticator(authenticate=self._authenticate)
        self.streams = StreamRegistry(limits or Limits(), again_after=24.0)
        self.recheck = Reauthenticator(self.auth, self.streams, lambda: self.now)

    def open(self, name: str, principal: Principal) -> OpenStream:
        self.answers[name] = principal
        scope = visit({"x-who": name})

        async def cut() -> None:
            self.cut.append(name)

        return OpenStream(scope, "chat", principal, principal.owner, cut)

    async def at(self, now: float) -> list[str]:
        """Whose streams were cut by this time."""
        self.now = now
        await self.recheck.check_due()
        return self.cut

    def _authenticate(self, request: HTTPConnection) -> Principal | None:
        self.asked += 1
        self.when_asked()
        answer = self.answers[request.headers["x-who"]]
        if isinstance(answer, Exception):
            raise answer
        assert answer is None or isinstance(answer, Principal)
        return answer


@requirement("limits:rates")
def test_open_streams_are_limited_per_principal_and_per_worker() -> None:
    scene = Scene(Limits(streams_per_principal=2, streams_per_worker=3))
    with ExitStack() as stack:
        for principal in (ADA, ADA, BOB):
            stack.enter_context(scene.streams.counted(scene.open("x", principal), 0.0))
        for principal, said in ((ADA, "2 open streams"), (EVE, "limit of open streams")):
            with pytest.raises(TooMany, match=said), scene.streams.counted(scene.open("x", principal), 0.0):
                pass
        assert len(scene.streams) == 3
    assert len(scene.streams) == 0
    with scene.streams.counted(scene.open("x", EVE), 0.0):
        assert len(scene.streams) == 1


@requirement("limits:rates")
def test_a_stream_that_raises_is_no_longer_counted() -> None:
    scene = Scene(Limits(streams_per_principal=1))
    with pytest.raises(ZeroDivisionError), scene.streams.counted(scene.open("x", ADA), 0.0):
        raise ZeroDivisionError
    with scene.streams.counted(scene.open("x", ADA), 0.0):
        pass


@requirement("auth:asked-again")
async def test_a_stream_is_reauthenticated_in_time_and_aborted_when_its_credential_is_revoked() -> None:
    scene = Scene()
    with scene.streams.counted(scene.open("a", ADA), 0.0), scene.streams.counted(scene.open("b", BOB), 10.0):
        assert await scene.at(23.0) == []
        assert scene.asked == 0
        assert await scene.at(24.0) == []
        assert scene.asked == 1
        scene.answers["a"] = None
        assert await scene.at(34.0) == []
        assert await scene.at(48.0) == ["a"]
        assert scene.streams.next_due() == 58.0


@requirement("auth:asked-again")
@pytest.mark.parametrize(
    "now",
    [None, BOB, EVE, Principal("house", "ada", frozenset({"chat"})), Principal("house", "ada", frozenset())],
    ids=["nobody", "another subject", "another tenant", "less", "nothing"],
)
async def test_a_changed_principal_has_to_connect_again(now: Principal | None) -> None:
    scene = Scene()
    with scene.streams.counted(scene.open("a", ADA), 0.0):
        scene.answers["a"] = now
        assert await scene.at(30.0) == ["a"]


@requirement("auth:asked-again")
async def test_a_hook_that_raises_is_a_refusal_and_the_other_streams_are_still_checked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    scene = Scene()
    with scene.streams.counted(scene.open("a", ADA), 0.0), scene.streams.counted(scene.open("b", BOB), 0.0):
        scene.answers["a"] = RuntimeError("the directory is down")
        assert await scene.at(30.0) == ["a"]
        assert scene.asked == 2


@requirement("auth:asked-again")
async def test_a_stream_that_has_ended_is_not_checked() -> None:
    scene = Scene()
    with scene.streams.counted(scene.open("a", ADA), 0.0):
        pass
    assert scene.streams.next_due() is None
    assert await scene.at(30.0) == []
    assert scene.asked == 0


@requirement("auth:asked-again")
async def test_a_stream_that_ends_while_others_are_checked_does_not_end_the_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recheck_module, "AT_ONCE", 1)
    scene = Scene()
    with ExitStack() as later, scene.streams.counted(scene.open("b", BOB), 0.0):
        later.enter_context(scene.streams.counted(scene.open("a", ADA), 0.0))
        # b was opened first, so it is checked first
        scene.when_asked = later.close
        assert await scene.at(30.0) == []
        assert scene.asked == 1
        scene.answers["b"] = None
        assert await scene.at(60.0) == ["b"]


@requirement("auth:asked-again")
async def test_a_stream_that_cannot_be_closed_does_not_end_the_checks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    scene = Scene()
    stuck = scene.open("a", ADA)

    async def cut() -> None:
        raise OSError("the peer is gone")

    stuck.cut = cut
    with scene.streams.counted(stuck, 0.0), scene.streams.counted(scene.open("b", BOB), 0.0):
        scene.answers["a"] = scene.answers["b"] = None
        assert await scene.at(30.0) == ["b"]


@requirement("auth:asked-again")
async def test_a_revoked_credential_is_not_counted_as_a_failure() -> None:
    scene = Scene()
    with ExitStack() as stack:
        for number in range(30):
            stack.enter_context(scene.streams.counted(scene.open(str(number), ADA), 0.0))
            scene.answers[str(number)] = None
        assert len(await scene.at(30.0)) == 30
    scene.answers["new"] = BOB
    assert await scene.auth.admit(visit({"x-who": "new", "authorization": "x"}), "chat") == BOB


@requirement("auth:asked-again")
async def test_many_streams_are_checked_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recheck_module, "AT_ONCE", 3)
    at_once: list[int] = []
    under_way = 0

    async def authenticate(request: HTTPConnection) -> Principal | None:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return ADA

    scene = Scene()
    recheck = Reauthenticator(Authenticator(authenticate=authenticate), scene.streams, lambda: 30.0)
    with ExitStack() as stack:
        for number in range(10):
            stack.enter_context(scene.streams.counted(scene.open(str(number), ADA), 0.0))
        await recheck.check_due()
    assert (len(at_once), max(at_once)) == (10, 3)
