from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_private import check

BASE = "uvicorn.protocols.http.httptools_impl.HttpToolsProtocol"
PROTOCOL = """
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
class Ours(HttpToolsProtocol):
    def on_body(self, body):
        {}
"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import uvicorn._types\n", "1: imports uvicorn._types"),
        ("from starlette import _utils\n", "1: imports starlette._utils"),
        ("from starlette._utils import is_async_callable\n", "1: imports starlette._utils.is_async_callable"),
        ("import asyncio\nasyncio.Handle._run(1)\n", "2: uses asyncio.Handle._run"),
        ("import asyncio\ngetattr(asyncio.Handle, '_run')\n", "2: uses asyncio.Handle._run"),
        (
            "def f(c):\n    c._transport.close()\n",
            "2: uses _transport, which nothing in this repository defines",
        ),
        (
            PROTOCOL.format("self._should_upgrade()"),
            f"5: Ours uses _should_upgrade, which {BASE} may define",
        ),
        (
            PROTOCOL.format("self._unset_keepalive_if_required = None"),
            f"3: Ours defines _unset_keepalive_if_required, which {BASE} uses for itself",
        ),
    ],
)
def test_a_private_part_of_another_library_is_found(code: str, told: str, tmp_path: Path) -> None:
    _write(tmp_path, "src/farhand/a.py", code)
    assert f"src/farhand/a.py:{told}" in check(tmp_path)


def test_an_attribute_inherited_through_a_class_of_ours_is_found(tmp_path: Path) -> None:
    _write(tmp_path, "src/farhand/a.py", "import logging\nclass A(logging.Formatter): ...\n")
    _write(
        tmp_path,
        "src/farhand/b.py",
        "from farhand.a import A\nclass B(A):\n    def f(self): return self._style\n",
    )
    assert check(tmp_path)[0].startswith("src/farhand/b.py:3: ")


def test_private_names_of_our_own_and_documented_ones_are_free(tmp_path: Path) -> None:
    _write(
        tmp_path,
        "src/farhand/a.py",
        "import os\n"
        "class Reader:\n"
        "    __slots__ = ('_at',)\n"
        "    def __init__(self): self._seen = self._read()\n"
        "    def _read(self): return self._at\n"
        "os._exit(1)\n"
        "(1)._replace(a=2)\n",
    )
    _write(
        tmp_path,
        "tests/test_a.py",
        "from farhand.a import Reader\nassert Reader()._seen\nReader()._at\nfrom farhand import _a\n",
    )
    assert check(tmp_path) == []


def test_a_class_of_ours_may_have_private_names_beside_those_of_its_base(tmp_path: Path) -> None:
    _write(tmp_path, "src/farhand/a.py", PROTOCOL.format("self._last_body = body"))
    assert check(tmp_path) == []


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
