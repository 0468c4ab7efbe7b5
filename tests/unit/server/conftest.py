"""Shared by the tests of the server: sample built pages, so that no test depends on a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from farhand.server import runtime as runtime_module
from farhand.server.static_files import load_pages


@pytest.fixture
def built_pages(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a small build, which every app of the test serves."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "index.html").write_text("<title>chat</title>")
    (folder / "inspector.html").write_text("<title>inspector</title>")
    monkeypatch.setattr(runtime_module, "load_pages", lambda: load_pages(folder))
    return folder
