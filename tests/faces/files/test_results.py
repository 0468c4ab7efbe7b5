"""Files that results refer to: they go with their thread, and a bad ref changes nothing else."""

from __future__ import annotations

import pytest

from farhand.core.file import Kept
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL, Owner
from farhand.models.scripted import Ask
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.faces.conftest import Serve
from tests.faces.files.uploads import NOTHING, PNG, kept, people, uploaded
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.header_auth import check
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

PICK = Ask("open_url", {"url": "u"})
WEEK_SEC = 7 * 86400.0
NO_REF = "blob_" + "0" * 32


async def purge(served: Served) -> None:
    """As if everything had been kept for long enough."""
    log = served.service.log
    await log.purge(before=log.now() + 1)


async def answered(page: Page, output: object) -> None:
    """A call of this page, answered with this output."""
    turn = await page.say("pick")
    ack = {"toolCallId": turn.calls[-1], "status": "success", "output": output}
    assert (await page.http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
    await page.resume()


def scene(chats: int = 1) -> Scene:
    steps: list[object] = [[PICK], "Done."] * chats
    # a list of steps, each of them one that a script may have
    return Scene(steps)  # type: ignore[arg-type]


@requirement("files:with-their-thread")
async def test_a_file_that_a_result_refers_to_goes_with_its_thread(serve: Serve, store: str) -> None:
    server = await serve(scene().agent, store=store)
    ref, other = await uploaded(server.http), await uploaded(server.http)
    page = Page(server.http)
    await answered(page, {"deep": [{"file": {"ref": ref, "name": "a.png"}}], "ref": "x"})
    await purge(server)
    assert (await server.http.get(f"/api/files/{ref}")).content == PNG
    assert (await server.http.get(f"/api/files/{other}")).status_code == 404
    await server.http.delete(f"/api/chat/{page.id}")
    assert (await server.http.get(f"/api/files/{ref}")).status_code == 404
    assert await kept(server) == NOTHING


@requirement("files:with-their-thread")
async def test_a_file_of_two_threads_goes_with_the_last(serve: Serve, store: str) -> None:
    server = await serve(scene(2).agent, store=store)
    ref = await uploaded(server.http)
    pages = [Page(server.http), Page(server.http)]
    for page in pages:
        await answered(page, {"ref": ref})
    await server.http.delete(f"/api/chat/{pages[0].id}")
    await purge(server)
    assert (await server.http.get(f"/api/files/{ref}")).content == PNG
    await server.http.delete(f"/api/chat/{pages[1].id}")
    assert await kept(server) == NOTHING


@requirement("files:with-their-thread")
async def test_a_file_in_a_message_goes_with_its_thread(serve: Serve, store: str) -> None:
    server = await serve(Scene(["Nice."]).agent, store=store)
    ref = await uploaded(server.http)
    page = Page(server.http)
    parts = [{"type": "file", "url": f"/api/files/{ref}"}, {"type": "file", "url": "data:text/plain,hi"}]
    page.messages = [{"id": "m1", "role": "user", "parts": parts}]
    await page.send()
    await purge(server)
    assert await kept(server) == Kept(2, len(PNG) + 2)
    await server.http.delete(f"/api/chat/{page.id}")
    assert await kept(server) == NOTHING


@pytest.mark.parametrize("whose", ["nobody", "bob"])
async def test_a_result_with_a_ref_that_is_not_there_stands_and_binds_nothing(
    serve: Serve, store: str, whose: str
) -> None:
    on = scene()
    server = await serve(on.agent, store=store, authenticate=check)
    async with people(server, "ann", "bob") as (ann, bob):
        theirs = await uploaded(bob)
        output = {"ref": theirs if whose == "bob" else NO_REF, "name": "a.png"}
        page = Page(ann)
        await answered(page, output)
        [result] = on.seen
        assert result.outcome == Success(output)
        # looked up, and not found: which is how a model comes to be told so
        assert on.model.prompts[-1].files == {output["ref"]: None}
        await ann.delete(f"/api/chat/{page.id}")
        assert (await bob.get(f"/api/files/{theirs}")).content == PNG
        # and nobody's file was kept from being removed
        await purge(server)
        assert await kept(server, Owner("house", "bob")) == NOTHING


@requirement("files:with-their-thread")
async def test_a_file_that_no_thread_refers_to_goes_after_a_week(serve: Serve) -> None:
    clock = FakeClock()
    store = MemoryStore(clock)
    server = await serve(scene().agent, store=store)
    ref = await uploaded(server.http)
    keep = server.service.settings.timeouts.keep_settled
    assert keep == WEEK_SEC
    clock.advance(WEEK_SEC - 1)
    await server.service.log.purge(before=store.now() - keep)
    assert await store.files.get(LOCAL, ref) is not None
    clock.advance(2)
    await server.service.log.purge(before=store.now() - keep)
    assert await store.files.get(LOCAL, ref) is None
