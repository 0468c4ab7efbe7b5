"""Threads are named inside their owner's own space; messages are unique and keep their order."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec.structs import replace

from farhand.core.outcome import Success
from farhand.core.thread import (
    Asked,
    AssistantMessage,
    File,
    Message,
    Reasoning,
    Resolved,
    ResultsMessage,
    Text,
    UserMessage,
)
from farhand.store.base import (
    AllowTool,
    Committed,
    CutThread,
    DeleteThread,
    InsertMessage,
    InsertThread,
    RenameThread,
)
from farhand.testing.store_laws.given import ANN, BOB, Laws, user_message

EVERY_MESSAGE: tuple[Message, ...] = (
    UserMessage("m1", (Text("hi \u0000 \U0001f600"), File("blob_1", "a.png", "image/png", 12))),
    AssistantMessage(
        "run_1", 1, (Reasoning("hm", {"id": "r"}), Asked("call_1", "open_url", {"url": 1}, "call_0"))
    ),
    ResultsMessage("run_1", 1, (Resolved("call_1", "open_url", {"url": 1}, Success([1, 1.0]), "call_0"),)),
)


class ThreadLaws(Laws):
    async def test_the_bytes_of_messages_are_counted_by_owner_and_by_tenant(self) -> None:
        async with self.given() as given:
            await given.thread("t1")
            assert await given.store.message_bytes(ANN.tenant, ANN.subject) == 0
            await given.write(*(InsertMessage(ANN, "t1", message) for message in EVERY_MESSAGE))
            at_least = sum(len(msgspec.json.encode(message)) for message in EVERY_MESSAGE)
            counted = await given.store.message_bytes(ANN.tenant, ANN.subject)
            # a record may be stored with words of its own around it
            assert at_least <= counted <= 2 * at_least
            assert await given.store.message_bytes(ANN.tenant) == counted
            assert await given.store.message_bytes(ANN.tenant, "nobody") == 0
            assert await given.store.message_bytes("nobody") == 0
            await given.write(DeleteThread(ANN, "t1"))
            assert await given.store.message_bytes(ANN.tenant, ANN.subject) == 0

    async def test_whatever_a_reader_does_to_its_messages_changes_no_record(self) -> None:
        async with self.given() as given:
            await given.thread("t1")
            await given.write(*(InsertMessage(ANN, "t1", message) for message in EVERY_MESSAGE))
            before = msgspec.json.encode(await given.store.messages(ANN, "t1"))
            _, said, results = await given.store.messages(ANN, "t1")
            assert isinstance(said, AssistantMessage)
            assert isinstance(results, ResultsMessage)
            thought, asked = said.parts
            [resolved] = results.results
            assert isinstance(thought, Reasoning)
            assert isinstance(asked, Asked)
            assert isinstance(resolved.outcome, Success)
            for value in (thought.echo, asked.input, resolved.input, resolved.outcome.output):
                assert isinstance(value, dict | list)
                value.clear()
            assert msgspec.json.encode(await given.store.messages(ANN, "t1")) == before

    async def test_a_thread_that_exists_stays_as_it_is_and_only_its_last_use_moves(self) -> None:
        async with self.given() as given:
            first = replace(given.new_thread("t1"), title="First", allowed=("v1",))
            await given.write(InsertThread(first))
            given.clock.advance(5)
            await given.write(InsertThread(replace(given.new_thread("t1"), title="Second")))
            assert await given.store.get_thread(ANN, "t1") == replace(first, updated_at=given.clock.now())

    async def test_a_commit_says_whether_its_thread_began_with_it(self) -> None:
        async with self.given() as given:
            first, again, *rest = await asyncio.gather(
                *(given.write(InsertThread(given.new_thread(name))) for name in ("t1", "t1", "t2"))
            )
            assert (first.begun, again.begun, rest[0].begun) == (True, False, True)
            cut = CutThread(ANN, "t1", "m1")
            await given.write(InsertMessage(ANN, "t1", user_message("m1", "hello")))
            assert not (await given.write(InsertThread(given.new_thread("t1")), cut)).begun
            assert not (await given.write(InsertMessage(ANN, "t1", user_message("m2", "hello")))).begun

    async def test_the_same_name_of_another_owner_is_another_thread(self) -> None:
        async with self.given() as given:
            mine, theirs = await given.thread("t1", ANN), await given.thread("t1", BOB)
            await given.write(InsertMessage(ANN, "t1", user_message("m1", "mine")))
            await given.write(InsertMessage(BOB, "t1", user_message("m1", "theirs")))
            assert await given.store.get_thread(ANN, "t1") == mine
            assert await given.store.get_thread(BOB, "t1") == theirs
            assert await given.store.messages(ANN, "t1") == [user_message("m1", "mine")]

    async def test_threads_and_their_runs_are_counted_for_their_owner_alone(self) -> None:
        async with self.given() as given:
            store = given.store
            assert await store.count_threads(ANN) == 0
            await given.end(await given.run())
            await given.run()
            await given.thread("t2")
            await given.thread("t1", owner=BOB)
            assert (await store.count_threads(ANN), await store.count_threads(BOB)) == (2, 1)
            assert [await store.count_runs(ANN, name) for name in ("t1", "t2", "t3")] == [2, 0, 0]
            assert await store.count_runs(BOB, "t1") == 0

    async def test_every_kind_of_message_comes_back_in_the_order_written(self) -> None:
        async with self.given() as given:
            await given.thread()
            for message in EVERY_MESSAGE:
                await given.write(InsertMessage(ANN, "t1", message))
            assert await given.store.messages(ANN, "t1") == list(EVERY_MESSAGE)

    async def test_a_long_history_comes_back_whole_and_in_order(self) -> None:
        async with self.given() as given:
            await given.thread()
            messages = [user_message(f"m{number}") for number in range(300)]
            await given.write(*(InsertMessage(ANN, "t1", message) for message in messages))
            assert await given.store.messages(ANN, "t1") == messages

    async def test_a_message_is_written_once(self) -> None:
        async with self.given() as given:
            await given.thread("t1")
            await given.thread("t2")
            message = await given.message("m1", "t1")
            assert await given.refuse(InsertMessage(ANN, "t1", user_message("m1", "other"))) == "exists"
            assert await given.store.messages(ANN, "t1") == [message]
            await given.message("m1", "t2")

    async def test_of_many_equal_posts_at_once_one_is_written(self) -> None:
        async with self.given() as given:
            await given.thread()
            post = InsertMessage(ANN, "t1", user_message("m1"))
            commits = await asyncio.gather(*(given.store.commit(post) for _ in range(20)))
            assert sum(isinstance(commit, Committed) for commit in commits) == 1
            assert len(await given.store.messages(ANN, "t1")) == 1

    async def test_a_message_needs_a_thread(self) -> None:
        async with self.given() as given:
            await given.thread("t1", BOB)
            assert await given.refuse(InsertMessage(ANN, "t1", user_message("m1"))) == "missing"

    async def test_a_renamed_thread_keeps_everything_else(self) -> None:
        async with self.given() as given:
            thread = await given.thread()
            await given.write(AllowTool(ANN, "t1", "v1"), RenameThread(ANN, "t1", "A better title"))
            renamed = replace(thread, title="A better title", allowed=("v1",))
            assert await given.store.get_thread(ANN, "t1") == renamed
            assert await given.refuse(RenameThread(BOB, "t1", "x")) == "missing"

    async def test_threads_are_listed_a_page_at_a_time_the_last_used_first(self) -> None:
        async with self.given() as given:
            for number in range(100):
                await given.thread(f"t{number:03}")
                # some are used in the same moment
                given.clock.advance(number % 2)
            await given.thread("of bob", BOB)
            given.clock.advance(1)
            await given.write(InsertThread(given.new_thread("t050")))
            listed = await given.store.threads(ANN, limit=1000)
            key = [(thread.updated_at, thread.thread_id) for thread in listed]
            assert (len(listed), listed[0].thread_id) == (100, "t050")
            assert key == sorted(key, reverse=True)
            first = await given.store.threads(ANN, limit=70)
            rest = await given.store.threads(ANN, limit=70, after=first[-1].used)
            assert first + rest == listed
            assert await given.store.threads(ANN, limit=70, after=listed[-1].used) == []

    async def test_a_thread_that_is_used_or_deleted_while_one_pages_repeats_no_other(self) -> None:
        async with self.given() as given:
            for number in range(6):
                await given.thread(f"t{number}")
                given.clock.advance(1)
            first = await given.store.threads(ANN, limit=2)
            assert [thread.thread_id for thread in first] == ["t5", "t4"]
            place = first[-1].used
            # the very one that the page ended with moves to the top, another one leaves
            await given.thread("t4")
            await given.write(DeleteThread(ANN, "t3"))
            rest = await given.store.threads(ANN, limit=10, after=place)
            assert [thread.thread_id for thread in rest] == ["t2", "t1", "t0"]
            await given.write(DeleteThread(ANN, "t4"))
            assert await given.store.threads(ANN, limit=10, after=place) == rest

    async def test_a_tool_is_allowed_once_for_this_thread_and_no_other(self) -> None:
        async with self.given() as given:
            await given.thread("t1")
            other = await given.thread("t2")
            for version in ("v1", "v2", "v1"):
                await given.write(AllowTool(ANN, "t1", version))
            thread = await given.store.get_thread(ANN, "t1")
            assert thread is not None
            assert thread.allowed == ("v1", "v2")
            assert await given.store.get_thread(ANN, "t2") == other
            assert await given.refuse(AllowTool(BOB, "t1", "v1")) == "missing"
