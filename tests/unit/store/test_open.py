"""Opening a store by its address."""

from __future__ import annotations

from pathlib import Path

import pytest

from farhand.errors import BadSetting
from farhand.store.memory import MemoryStore
from farhand.store.open import inspect_store, open_store, redact_password
from farhand.store.postgres.connection import parse_address
from farhand.store.sqlite import SqliteStore


async def test_memory_is_a_store_that_is_gone_with_the_process() -> None:
    store = await open_store("memory:")
    assert isinstance(store, MemoryStore)
    assert store.now() > 1_700_000_000


async def test_three_slashes_are_a_file_here_and_four_a_file_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for address, file in (("sqlite:///here.db", "here.db"), (f"sqlite:///{tmp_path}/there.db", "there.db")):
        store = await open_store(address)
        assert isinstance(store, SqliteStore)
        await store.close()
        assert (tmp_path / file).is_file()


@pytest.mark.parametrize("address", ["", "memory:x", "sqlite:", "sqlite:///", "sqlite://a.db", "redis://x"])
async def test_anything_else_is_a_clear_error(address: str) -> None:
    with pytest.raises(BadSetting, match="not a store address"):
        await open_store(address)


@pytest.mark.parametrize("address", ["postgresql+asyncpg://u:s3cr3t@h/x", "sqlite+aiosqlite:///a.db"])
async def test_an_address_for_sqlalchemy_is_told_from_a_wrong_one(address: str) -> None:
    with pytest.raises(BadSetting, match="not a store address") as refused:
        await open_store(address)
    dialect = address.partition("+")[0]
    assert refused.value.hint.startswith(f"Leave out what follows `{dialect}` before `://`")
    assert "s3cr3t" not in str(refused.value)


SECRETS = [
    "postgresql://u:s3cr3t@h/x",
    "postgresql+asyncpg://u:s3cr3t@h/x",
    "postgresql://:s3cr3t@h/x",
    "postgresql://u:p@s3cr3t@h/x",
    "postgresql://u:p/s3cr3t@h/x",
    "postgresql://u:12/s3cr3t@h/x",
    "postgresql://u:p?s3cr3t@h/x",
    "postgresql://u:12?s3cr3t@h/x",
    "postgresql://u:p#s3cr3t@h/x",
    "postgresql://u:12#s3cr3t@h/x",
    "postgresql://u:[s3cr3t@h/x",
    "postgresql://u:p:s3cr3t@h/x",
    "postgresql://u%3As3cr3t@h/x",
    "postgresql://u:s3cr3t",
    "postgresql://h/x?password=s3cr3t",
    "postgresql://h/x?sslmode=require&pass%77ord=s3cr3t&sslpassword=s3cr3t",
    "postgresql://h/x?password=a@s3cr3t",
    "postgresql:u:s3cr3t@h/x",
    "postgresql:u:s3cr3t",
    "u:s3cr3t@h/x",
    "mysql://u:s3cr3t@h/x",
]


@pytest.mark.parametrize("address", SECRETS)
async def test_a_password_is_never_shown_however_it_is_written(address: str) -> None:
    assert "s3cr3t" not in redact_password(address)
    if not address.startswith("postgresql://"):
        for use in (open_store, inspect_store):
            with pytest.raises(BadSetting) as refused:
                await use(address)
            assert "s3cr3t" not in str(refused.value)
        return
    try:
        told = parse_address(address).name
    except BadSetting as error:
        told = str(error)
    assert "s3cr3t" not in told


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("memory:", "memory:"),
        ("sqlite:////home/a@b:c/x.db", "sqlite:////home/a@b:c/x.db"),
        ("postgresql://u:p@h:5432/x?schema=two&password=p", "postgresql://u@h:5432/x?schema=two"),
        ("postgresql://u:p@ss@[::1]:5432,other:5433/x", "postgresql://u@[::1]:5432,other:5433/x"),
        ("postgresql://u:p/ss@h", "postgresql://u@h"),
        ("postgresql:///x?host=/run", "postgresql:///x?host=/run"),
        ("postgresql://h/x", "postgresql://h/x"),
        ("redis://x", "redis://x"),
        ("a store of the program's own", "a store of the program's own"),
    ],
)
def test_the_rest_of_an_address_is_shown(address: str, told: str) -> None:
    assert redact_password(address) == told
