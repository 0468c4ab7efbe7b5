"""A pooler that shares connections is refused at start with one clear line: with a real PgBouncer."""

from __future__ import annotations

import pytest

from farhand.errors import BadSetting
from farhand.store.open import inspect_store, open_store
from farhand.store.postgres import schema
from tests.pooler import ALL, running_pooler
from tests.postgres import Cluster
from tests.process import run_farhand

TOLD = "LISTEN does not work through a transaction pooler"


def by_the_role(cluster: Cluster, schema: str) -> None:
    """The settings of the session are those of the user, as operators of a pooler set them."""
    cluster.query(f"ALTER ROLE farhand SET search_path = {schema}")


async def test_a_transaction_pooler_is_refused_at_start(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "PROBE_SEC", 1.0)
    by_the_role(cluster, "pooled")
    try:
        with running_pooler(cluster, mode="transaction") as port:
            address = cluster.address("pooled", port=port)
            with pytest.raises(BadSetting, match=f"our own NOTIFY did not arrive. {TOLD}"):
                await open_store(address)
            facts = await inspect_store(address)
            assert facts.problem == "our own NOTIFY did not arrive"
            assert TOLD in facts.hint
    finally:
        cluster.query("ALTER ROLE farhand RESET search_path")


@pytest.mark.parametrize("mode", ["transaction", "session"])
async def test_a_pooler_that_drops_the_settings_of_a_session_is_refused(cluster: Cluster, mode: str) -> None:
    with running_pooler(cluster, mode=mode) as port:
        address = cluster.address(port=port)
        with pytest.raises(
            BadSetting, match=r"the settings of a session \(search_path\) are lost on the way"
        ):
            await open_store(address)


async def test_a_pooler_that_takes_none_of_our_settings_is_named(cluster: Cluster) -> None:
    with running_pooler(cluster, mode="session", passed=ALL[:1]) as port:
        address = cluster.address(port=port)
        with pytest.raises(
            BadSetting,
            match=f"unsupported startup parameter.*This error comes from a connection pooler. {TOLD}",
        ):
            await open_store(address)
        facts = await inspect_store(address)
        assert TOLD in facts.hint


async def test_a_server_behind_a_transaction_pooler_never_says_that_it_is_ready(cluster: Cluster) -> None:
    with running_pooler(cluster, mode="transaction") as port:
        ended = await run_farhand(
            "run", "tests.chaos.agents:agent", "--store", cluster.address(port=port), "--port", "0"
        )
    [line] = ended.err.splitlines()
    assert (ended.code, ended.out) == (2, "")
    assert TOLD in line
