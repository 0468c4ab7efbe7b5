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
    assert connection.client() is first
    await connection.close()
    assert first.closed
    second = connection.client()
    assert second is not first
    await connection.close()
    await connection.close()
    assert second.closed


def test_another_event_loop_gets_a_client_of_its_own() -> None:
    connection = ProviderConnection(Client, Client.close)

    async def used() -> Client:
        return connection.client()

    first, second = asyncio.run(used()), asyncio.run(used())
    assert first is not second
    asyncio.run(connection.close())
    assert not second.closed, "its sockets went with its loop"
