"""`farhand run` and `farhand demo` as real processes: access, exit codes, errors at start."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import socket
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from html import unescape
from pathlib import Path

import httpx2
import pytest

from tests.faces.ui_stream.page import Page
from tests.process import FarhandProcess, farhand_process, run_farhand
from tests.requirement import requirement

AGENT = "tests.chaos.agents:agent"
STREAMS = 100


def chat(text: str, thread: str = "t1", wait: str = "hold") -> dict[str, object]:
    message = {"id": f"{thread}-m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": thread, "wait": wait, "messages": [message]}


@requirement("auth:token")
async def test_only_who_shows_the_token_is_let_in() -> None:
    async with farhand_process(AGENT) as server, server.client(signed_in=False) as stranger:
        refused = await stranger.post("/api/chat", json=chat("hello"))
        assert (refused.status_code, refused.headers["www-authenticate"]) == (
            401,
            'Bearer realm="farhand development token"',
        )
        wrong = await stranger.post(
            "/api/chat", json=chat("hello"), headers={"authorization": "Bearer " + "x" * 32}
        )
        assert wrong.status_code == 401
        async with server.client() as client:
            welcome = await client.post("/api/chat", json=chat("hello"))
        assert welcome.status_code == 200
        assert "hello" in welcome.text


@requirement("auth:cookie")
async def test_the_printed_address_signs_a_browser_in_and_leaves_the_token_behind() -> None:
    async with farhand_process(AGENT) as server, server.client(signed_in=False) as browser:
        plain = await browser.get("/")
        assert plain.status_code == 200
        assert "set-cookie" not in plain.headers
        assert server.token not in plain.text

        opened = await browser.get("/", params={"token": server.token})
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert cookie.startswith(f"farhand_{server.port}=")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert server.token not in cookie

        here = {"origin": server.url}
        answered = await browser.post("/api/chat", json=chat("hello"), headers=here)
        assert answered.status_code == 200
        page = await browser.get("/", headers={"sec-fetch-site": "none"})
        assert "open_page" in page.text


@requirement("auth:origin")
async def test_a_page_from_elsewhere_is_refused_and_told_the_flag() -> None:
    async with (
        farhand_process(AGENT, "--allow-origin", "http://localhost:5173") as server,
        server.client() as client,
    ):
        foreign = await client.post("/api/chat", json=chat("hi"), headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert "--allow-origin https://evil.example" in foreign.text
        assert "access-control-allow-origin" not in foreign.headers

        listed = {"origin": "http://localhost:5173"}
        welcome = await client.post("/api/chat", json=chat("hi"), headers=listed)
        assert (welcome.status_code, welcome.headers["access-control-allow-origin"]) == (
            200,
            listed["origin"],
        )
        asked = {**listed, "access-control-request-method": "POST"}
        preflight = await client.options("/api/chat", headers=asked)
        assert preflight.status_code == 204


@requirement("auth:host")
async def test_a_name_that_somebody_else_points_here_is_refused() -> None:
    async with farhand_process(AGENT) as server, server.client() as client:
        rebound = await client.post("/api/chat", json=chat("hi"), headers={"host": "evil.example"})
        assert (rebound.status_code, "--allow-host evil.example" in rebound.text) == (403, True)
        assert (await client.get("/healthz", headers={"host": "evil.example"})).status_code == 403
        local = {"host": f"localhost:{server.port}"}
        assert (await client.get("/healthz", headers=local)).json() == {"ok": True}


async def test_a_body_that_is_not_declared_as_json_is_refused() -> None:
    async with farhand_process(AGENT) as server, server.client() as client:
        plain = await client.post("/api/chat", content=b"{}", headers={"content-type": "text/plain"})
    assert plain.status_code == 415


@requirement("auth:token")
async def test_open_lets_local_programs_in_without_the_token_and_pages_from_elsewhere_not() -> None:
    async with farhand_process(AGENT, "--open") as server, server.client(signed_in=False) as program:
        assert (await program.post("/api/chat", json=chat("hi"))).status_code == 200
        foreign = await program.post("/api/chat", json=chat("hi"), headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert "warning: --open" in server.err
        assert "token" not in server.out


@requirement("server:health")
async def test_health_and_readiness_need_no_token_and_unknown_paths_are_json() -> None:
    async with farhand_process(AGENT) as server, server.client(signed_in=False) as client:
        assert (await client.get("/healthz")).json() == {"ok": True}
        assert (await client.get("/readyz")).json() == {"ok": True}
        nowhere = await client.get("/nowhere")
        assert (nowhere.status_code, nowhere.json()["error"]["code"]) == (404, "unknown")
        wrong = await client.post("/healthz")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")


@requirement("auth:hook")
async def test_an_app_with_its_own_sign_in_may_be_reached_from_elsewhere() -> None:
    async with farhand_process("tests.chaos.agents:app", "--host", "0.0.0.0") as server:
        url = f"http://127.0.0.1:{server.port}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False, verify=False) as client:
            assert (await client.post("/api/chat", json=chat("hi"))).status_code == 401
            signed_in = {"x-api-key": "ada", "host": "agent.example.org"}
            assert (await client.post("/api/chat", json=chat("hi"), headers=signed_in)).status_code == 200
        assert "token" not in server.out


class Held:
    """A chat whose stream is open: the call has been shown, and nobody has answered it."""

    def __init__(self, response: httpx2.Response) -> None:
        self.body = ""
        self._pieces = response.aiter_text()

    async def shown(self) -> str:
        """The id of the call, once the stream has told it."""
        while "tool-input-available" not in self.body:
            self.body += await anext(self._pieces)
        return "call_" + self.body.partition('"toolCallId":"call_')[2].partition('"')[0]

    async def rest(self) -> str:
        async for piece in self._pieces:
            self.body += piece
        return self.body


async def hold(stack: AsyncExitStack, client: httpx2.AsyncClient, thread: str, text: str = "open it") -> Held:
    response = await stack.enter_async_context(client.stream("POST", "/api/chat", json=chat(text, thread)))
    assert response.status_code == 200, await response.aread()
    held = Held(response)
    await held.shown()
    return held


@requirement("serve:stop-within-10s")
async def test_a_stop_with_many_open_streams_ends_them_and_is_done_within_ten_seconds() -> None:
    async with AsyncExitStack() as stack:
        many = {
            "FARHAND_LIMITS__STREAMS_PER_PRINCIPAL": str(STREAMS),
            "FARHAND_LIMITS__RUNNING_PER_PRINCIPAL": str(STREAMS),
            "FARHAND_LIMITS__RUNS_PER_MIN": str(STREAMS),
        }
        server = await stack.enter_async_context(farhand_process(AGENT, env=many))
        client = await stack.enter_async_context(server.client())
        streams = [await hold(stack, client, f"t{number}") for number in range(STREAMS)]
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        bodies = [await held.rest() for held in streams]
        code = await server.wait()
        assert (code, time.monotonic() - began < 10) == (0, True), server.err
        # ended as a stream ends, not cut: its reader may come back for the rest
        assert all(body.rstrip().endswith("data: [DONE]") for body in bodies)
        await server.start()
        async with server.client() as again:
            for number, held in enumerate(streams):
                result = {"toolCallId": await held.shown(), "status": "success", "output": {"viewKey": "v1"}}
                assert (await again.post("/api/tools/ack", json=result)).json() == {"ok": True}
                assert (await Page(again, f"t{number}").resume()).finish == "stop", "nothing was lost"


@requirement("serve:stop-within-10s")
async def test_a_tool_that_never_ends_does_not_keep_the_process() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(farhand_process(AGENT))
        client = await stack.enter_async_context(server.client())
        await hold(stack, client, "t1", "hang")
        began = time.monotonic()
        code = await server.stop()
        assert (code, time.monotonic() - began < 10) == (0, True), server.err


@requirement("serve:stop-within-10s")
async def test_a_loop_that_stands_still_does_not_keep_the_process_either() -> None:
    async with farhand_process(AGENT) as server, server.client(timeout=1.0) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.post("/api/chat", json=chat("block"))
        began = time.monotonic()
        assert await server.stop() == 1
        assert time.monotonic() - began < 10


@requirement("serve:stop-within-10s")
async def test_ctrl_c_says_that_nothing_is_lost_and_a_second_one_exits_at_once() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(farhand_process(AGENT))
        assert await server.stop(signal.SIGINT) == 0
        assert server.err == ""
        assert "\nfarhand has stopped. Chats and open calls are kept in sqlite:///" in server.out
        await server.start()
        client = await stack.enter_async_context(server.client())
        await hold(stack, client, "t2", "hang")
        server.signal(signal.SIGINT)
        await until_stopping(server)
        server.signal(signal.SIGINT)
        assert await server.wait() == 130
        assert "stopped" not in server.out


async def until_stopping(server: FarhandProcess) -> None:
    """Until the first signal has been noticed: nobody is let in any more, and everybody is told so."""
    async with server.client() as client, asyncio.timeout(20):
        ready = await client.get("/readyz")
        while ready.status_code == 200:
            ready = await client.get("/readyz")
    assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")


@requirement("kill:parked")
async def test_a_killed_server_takes_the_result_after_its_restart() -> None:
    async with farhand_process(AGENT) as server:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(server.client())
            held = await hold(stack, client, "t1")
            call_id = await held.shown()
            await server.kill()
        await server.start()
        async with server.client() as again:
            ack = {"toolCallId": call_id, "status": "success", "output": {"viewKey": "v1"}}
            assert (await again.post("/api/tools/ack", json=ack)).json() == {"ok": True}
            resumed = await again.get("/api/chat/t1/stream")
        assert "v1" in resumed.text


async def said(*arguments: str, **options: object) -> str:
    """The one line a server that cannot start leaves behind."""
    ended = await run_farhand(*arguments, **options)  # type: ignore[arg-type]
    lines = ended.err.splitlines()
    assert (ended.code, len(lines), ended.out) == (2, 1, ""), ended
    assert "Traceback" not in lines[0]
    return lines[0]


@requirement("cli:one-line")
async def test_a_program_that_is_missing_or_broken_is_one_line_and_code_2(tmp_path: Path) -> None:
    assert "no module 'tests.nowhere'" in await said("run", "tests.nowhere:agent")
    broken = tmp_path / "broken.py"
    broken.write_text("import json\n\njson.loads('{')\n")
    line = await said("run", str(broken))
    assert "JSONDecodeError: Expecting property name" in line
    assert "broken.py:3)" in line


@requirement("cli:one-line")
async def test_a_taken_port_is_one_line_and_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = await said("run", AGENT, "--store", "memory:", "--port", port)
    assert f"Port {port} of 127.0.0.1 is in use by another program." in line


@requirement("cli:one-line")
async def test_a_second_server_on_the_same_file_is_one_line_and_code_2(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'farhand.db'}"
    async with farhand_process(AGENT, store=store) as server:
        line = await said("run", AGENT, "--store", store, "--port", "0")
        assert f"in use by another farhand server (process {server.pid})" in line
        async with server.client() as client:
            assert (await client.get("/readyz")).status_code == 200


@requirement("cli:one-line")
async def test_a_store_that_cannot_be_used_is_one_line_and_code_2(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database at all, but long enough to be read as the head of one" * 20)
    assert "cannot be used" in await said("run", AGENT, "--port", "0", "--store", f"sqlite:///{notes}")
    assert notes.read_text().startswith("not a database")


@requirement("cli:one-line")
async def test_a_bad_setting_is_one_line_and_code_2(tmp_path: Path) -> None:
    assert "FARHAND_PROT" in await said("run", AGENT, env={"FARHAND_PROT": "1"})
    file = tmp_path / "settings.toml"
    file.write_text("[timeouts]\nhold_for = 'long'\n")
    assert f"{file}: timeouts.hold_for: expected a number" in await said("run", AGENT, "--config", str(file))


@requirement("cli:loopback-only")
async def test_without_a_hook_only_this_machine_can_be_served() -> None:
    line = await said("run", AGENT, "--store", "memory:", "--host", "0.0.0.0", "--port", "0")
    assert "is reachable from other machines" in line
    assert "authenticate" in line
    assert "cannot be open" in await said("run", "tests.chaos.agents:app", "--open", "--port", "0")


async def test_the_commands_on_the_landing_page_work_as_they_stand() -> None:
    async with farhand_process("demo") as server, server.client() as client:
        page = (await client.get("/")).text
        chat_line, ack_line, run_line, results_line = [
            Command(unescape(text), server.token)
            for text in re.findall(r"<pre><code>(curl.*?)</code></pre>", page, re.DOTALL)
        ]
        async with AsyncExitStack() as stack:
            stranger = await stack.enter_async_context(server.client(signed_in=False))
            held = Held(await stack.enter_async_context(chat_line.stream(stranger)))
            call_id = await held.shown()
            async with ack_line.stream(stranger, ("call_...", call_id)) as acked:
                assert (await acked.aread()) == b'{"ok":true}'
            assert "https://example.com" in (await held.rest()).rpartition("tool-output-available")[2]
            async with run_line.stream(stranger) as paused:
                told = (await paused.aread()).decode()
            thread = re.findall(r"agent_uuid&quot;:&quot;([^&]+)", told)[0]
            call_id = re.findall(r"tool_use_id&quot;:&quot;([^&]+)", told)[0]
            changes = (('"agent_uuid":"..."', f'"agent_uuid":"{thread}"'), ("call_...", call_id))
            async with results_line.stream(stranger, *changes) as resumed:
                assert resumed.status_code == 200
                assert b"[DONE]" in await resumed.aread()


class Command:
    """A curl command as the page prints it, sent as curl would."""

    def __init__(self, text: str, token: str) -> None:
        words = shlex.split(text.replace("\\\n", " ").replace("$FARHAND_TOKEN", token))
        self.url = words[2]
        flags = list(zip(words[3::2], words[4::2], strict=True))
        self.headers = dict(value.split(": ", 1) for flag, value in flags if flag == "-H")
        self.body = next(value for flag, value in flags if flag == "-d")

    def stream(
        self, client: httpx2.AsyncClient, *changes: tuple[str, str]
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        body = self.body
        for old, new in changes:
            assert old in body
            body = body.replace(old, new)
        return client.stream("POST", self.url, content=body.encode(), headers=self.headers)


@requirement("cli:demo")
async def test_the_demo_starts_with_nothing_prepared_and_says_where_it_keeps_things() -> None:
    async with farhand_process("demo") as server, server.client() as client:
        assert (await client.post("/api/chat", json=chat("hello", wait="turn"))).status_code == 200
        assert "  model   scripted" in server.out
        assert "  store   sqlite:///" in server.out


async def test_options_and_variables_reach_an_app_and_the_start_says_where_each_came_from(
    tmp_path: Path,
) -> None:
    env = {"FARHAND_STORE": f"sqlite:///{tmp_path / 'store.db'}", "FARHAND_LIMITS__TITLE": "99"}
    options = ("--hold-for", "3", "--no-inspector")
    async with farhand_process("tests.chaos.named_apps:app", *options, env=env) as server:
        assert f"  store   sqlite:///{tmp_path / 'store.db'} (FARHAND_STORE)\n" in server.out
        assert "  model   scripted (Agent)\n" in server.out
        assert "  set     limits.title = 99 (FARHAND_LIMITS__TITLE)\n" in server.out
        assert "  set     timeouts.hold_for = 3 (--hold-for)\n" in server.out
        assert "  set     inspector = off (--inspector)\n" in server.out
        async with server.client() as client:
            assert (await client.post("/api/chat", json=chat("hello", wait="turn"))).status_code == 200
    assert (tmp_path / "store.db").exists()


async def test_a_store_that_create_app_names_wins_and_the_start_says_so() -> None:
    env = {"FARHAND_STORE": "sqlite:///unused.db"}
    async with farhand_process("tests.chaos.agents:app", env=env) as server:
        assert "  store   memory: (create_app; FARHAND_STORE is not used)\n" in server.out


async def test_peers_that_speak_no_http_fill_no_log() -> None:
    async with farhand_process(AGENT) as server:
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"HTTP/1.1 400")
            writer.close()
        assert server.err.count("Invalid HTTP request") == 1
