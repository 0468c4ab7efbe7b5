"""Paths that need no body accept only JSON: what a form on another site can send is refused there, too."""

from __future__ import annotations

import pytest

from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.page import Page

PATHS = [("POST", "/api/chat/chat/stop"), ("POST", "/agent/chat/abort"), ("DELETE", "/api/chat/chat")]
FOREIGN = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "text/plain; charset=application/json",
]


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_a_path_without_a_body_refuses_what_a_form_can_send(
    serve: Serve, method: str, path: str
) -> None:
    served = await serve(Scene(["Hi."]).agent)
    await Page(served.http, "chat").say("hi")
    for kind in FOREIGN:
        for content in (b"", b"a=1"):
            answer = await served.http.request(method, path, content=content, headers={"content-type": kind})
            assert answer.status_code == 415, (kind, content)
    undeclared = await served.http.request(method, path, content=b"a=1")
    assert undeclared.status_code == 415
    as_json = {"content-type": "application/json"}
    assert (await served.http.request(method, path, content=b"{}", headers=as_json)).status_code == 200


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_a_path_without_a_body_needs_none(serve: Serve, method: str, path: str) -> None:
    served = await serve(Scene(["Hi."]).agent)
    await Page(served.http, "chat").say("hi")
    assert (await served.http.request(method, path)).status_code == 200
