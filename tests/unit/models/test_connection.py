from __future__ import annotations

import asyncio

from farhand.models.settings import ProviderConnection


class Client:
    def __init__(self) -> None:
        self.closed = False

    async def close(self) -> None:
        self.closed = True


async def test_the_first_client_serves_until_it_is_closed_and_then_another_does() -> None:
    connection = ProviderConnection(Client, Client.close)
    first = connection.first
    assert await connection.client() is first
    await connection.close()
    assert first.closed
    second = await connection.client()
    assert second is not first
    await connection.close()
    await connection.close()
    assert second.closed


def test_another_event_loop_gets_a_client_of_its_own_and_that_of_an_ended_loop_is_closed() -> None:
    connection = ProviderConnection(Client, Client.close)

    async def used() -> Client:
        return await connection.client()

    first, second = asyncio.run(used()), asyncio.run(used())
    assert first is not second
    assert first.closed
    asyncio.run(connection.close())
    assert second.closed


def test_a_client_that_cannot_be_closed_without_its_loop_is_dropped() -> None:
    async def fail(client: Client) -> None:
        raise RuntimeError("Event loop is closed")

    connection = ProviderConnection(Client, fail)

    async def used() -> Client:
        return await connection.client()

    assert asyncio.run(used()) is not asyncio.run(used())
    asyncio.run(connection.close())


async def test_a_client_in_use_by_a_loop_of_another_thread_is_not_closed() -> None:
    connection = ProviderConnection(Client, Client.close)
    first = await connection.client()

    async def used() -> Client:
        return await connection.client()

    second = await asyncio.to_thread(asyncio.run, used())
    assert second is not first
    assert not first.closed
