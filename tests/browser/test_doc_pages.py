"""Every page that the docs print works as printed, in a browser, against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.doc_pages import build, printed
from tests.browser.test_other_origin import site
from tests.chaos.fault_proxy import FaultProxy
from tests.process import FarhandProcess, farhand_process

RENDER = """
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { %s as Shown } from "./%s";
createRoot(document.getElementById("root")).render(<StrictMode><Shown %s /></StrictMode>);
"""

ALLOW = """
import { LiveThread } from "@farhand/client";
import { allow, answerByHand } from "./%s";
const thread = new LiveThread({ threadId: location.hash.slice(1), onUnknown: "card" });
const shown = document.getElementById("root");
thread.subscribe(() => {
  const parts = thread.state.messages.flatMap((message) => message.parts);
  shown.textContent = parts.map((part) => part.text ?? "").join(" ");
});
Object.assign(window, { thread, allow: () => allow(thread), answer: (id) => answerByHand(thread, id) });
await thread.open();
"""

OTHER_WAYS = """
import { ask, live } from "./%s";
Object.assign(window, { ask, live });
"""

CONNECTED = """
import { hand, offered } from "./%s";
Object.assign(window, { hand, offered });
"""

RUN = 'import "./%s";'

AI_SDK, CLIENT, REACT = (f"ts/packages/{name}/README.md" for name in ("ai-sdk", "client", "react"))
HASH = "id={location.hash.slice(1)}"

PAGES: dict[tuple[str, int], tuple[str, str]] = {
    ("docs/how-to/use-chat.md", 0): ("use-chat", RENDER % ("Chat", "use-chat.code.tsx", HASH)),
    (AI_SDK, 0): ("first", RENDER % ("FirstPage", "first.code.tsx", "")),
    (AI_SDK, 1): ("turns", RENDER % ("Page", "turns.code.tsx", "")),
    (AI_SDK, 2): ("held", RENDER % ("HeldPage", "held.code.tsx", "")),
    (AI_SDK, 3): ("lasting", RENDER % ("LastingPage", "lasting.code.tsx", "")),
    (AI_SDK, 4): ("reloaded", RENDER % ("ReloadedPage", "reloaded.code.tsx", "")),
    (CLIENT, 0): ("hello", RUN % "hello.code.ts"),
    (CLIENT, 1): ("handlers", RUN % "handlers.code.ts"),
    (CLIENT, 2): ("allow", ALLOW % "allow.code.ts"),
    (CLIENT, 3): ("connected", CONNECTED % "connected.code.ts"),
    (CLIENT, 4): ("other-ways", OTHER_WAYS % "other-ways.code.ts"),
    (REACT, 1): ("cards", RENDER % ("Chat", "cards.code.tsx", "")),
    (REACT, 2): ("inbox", RENDER % ("Inbox", "inbox.code.tsx", "")),
    (REACT, 3): ("rating", RENDER % ("OwnCards", "rating.code.tsx", HASH)),
}
"""Every block with a page in it: the name of its page, and what puts it on screen."""

NO_PAGE = {
    ("ts/packages/protocol/README.md", 0),
    # an app of its own, in test_fresh_apps.py
    (REACT, 0),
    # programs, no pages
    ("ts/packages/node/README.md", 0),
    ("ts/packages/node/README.md", 1),
    ("docs/how-to/programs-in-node.md", 0),
    ("docs/how-to/programs-in-node.md", 1),
    # the same as in the README of the package, where it is tried
    ("docs/how-to/hands-without-our-chat.md", 0),
    ("docs/how-to/hands-without-our-chat.md", 1),
    ("docs/how-to/hands-without-our-chat.md", 2),
    # tried in ts/tests/agui/how-to.test.ts
    ("docs/how-to/ag-ui.md", 0),
    # parts of examples/copilotkit, which is tried in test_copilotkit.py
    *(("docs/how-to/copilotkit.md", number) for number in range(9)),
}


class Docs(NamedTuple):
    server: FarhandProcess
    origin: str
    room: Path


@pytest.fixture(scope="module")
async def docs(built: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Docs]:
    folder, room = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("room")
    (room / "gates").mkdir()
    blocks = {(block.source, block.number): block for block in printed()}
    with site(folder) as origin:
        async with farhand_process(
            "tests.browser.doc_agent:agent", "--allow-origin", origin, env={"TEST_ROOM": str(room)}
        ) as server:
            pages = {name: (blocks[key], main) for key, (name, main) in PAGES.items()}
            replaced = {
                "http://127.0.0.1:8787": server.url,
                "choose-16-or-more-characters": server.token,
                'url: "/farhand"': 'url: ""',
            }
            await build(pages, folder, replaced)
            yield Docs(server, origin, room)


@asynccontextmanager
async def elsewhere(browser: Browser, docs: Docs, path: str) -> AsyncIterator[Page]:
    """A page that comes from its own origin and brings the token."""
    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.goto(f"{docs.origin}/{path}")
        yield page
    finally:
        await context.close()


@asynccontextmanager
async def at_home(browser: Browser, docs: Docs, path: str, *, base: str = "") -> AsyncIterator[Page]:
    """A page behind the address of the server, as a dev server's proxy makes it; signed in as printed."""
    base = base or docs.server.url
    # what is served to the test alone comes from nowhere, and a socket to this machine would need an approval
    context = await browser.new_context(permissions=["local-network-access"])
    try:
        page = await context.new_page()
        await page.goto(f"{base}/?token={docs.server.token}")

        async def proxied(route: Route) -> None:
            response = await context.request.get(route.request.url.replace(f"{base}/pages", docs.origin))
            await route.fulfill(response=response)

        await context.route(f"{base}/pages/**", proxied)
        await page.goto(f"{base}/pages/{path}")
        yield page
    finally:
        await context.close()


async def fresh_chat(docs: Docs, chat: str) -> None:
    """Chats that the docs name are used by more than one page."""
    async with docs.server.client() as client:
        assert (await client.delete(f"/api/chat/{chat}")).status_code in (200, 404)


def unique(name: str) -> str:
    return f"{name}-{uuid4().hex[:8]}"


async def says(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message")
    await box.fill(text)
    await box.press("Enter")


async def once(page: Page, text: str) -> None:
    await expect(page.get_by_text(text, exact=True)).to_have_count(1)


def test_every_block_of_the_docs_is_in_the_list() -> None:
    assert {(block.source, block.number) for block in printed()} == PAGES.keys() | NO_PAGE


# ---------------------------------------------------------------------------------- docs/how-to/use-chat.md


async def test_use_chat_a_message_and_a_tool_of_the_page(browser: Browser, docs: Docs) -> None:
    async with elsewhere(browser, docs, f"use-chat.html#{unique('chat')}") as page:
        await says(page, "Hello")
        await once(page, "You said: Hello")
        await says(page, "Open the report")
        await once(page, "open_url gave {'url': 'https://example.org/report', 'viewKey': 'tab-1'}.")


@pytest.mark.parametrize("answer", ["Allow", "Deny"])
async def test_use_chat_an_approval_is_sent(browser: Browser, docs: Docs, answer: str) -> None:
    path = unique("file")
    async with elsewhere(browser, docs, f"use-chat.html#{unique('chat')}") as page:
        await says(page, f"delete {path}")
        await page.get_by_role("button", name=answer).click()
        ending = f"delete_file gave {{'deleted': '{path}'}}." if answer == "Allow" else "delete_file: denied."
        await once(page, ending)
        await expect(page.get_by_role("button", name=answer)).to_have_count(0)
    notes = docs.room / "notes.jsonl"
    ran = notes.read_text().count(path) if notes.exists() else 0
    assert ran == (1 if answer == "Allow" else 0)


async def test_use_chat_a_reload_in_the_middle_of_a_text_and_after_it(browser: Browser, docs: Docs) -> None:
    name = unique("tale")
    async with elsewhere(browser, docs, f"use-chat.html#{unique('chat')}") as page:
        await says(page, "Hello")
        await once(page, "You said: Hello")
        await says(page, f"tell {name}")
        await expect(page.get_by_text("Once upon a time")).to_be_visible()
        await page.reload()
        await expect(page.get_by_text("Once upon a time")).to_have_count(1)
        await once(page, "You said: Hello")
        (docs.room / "gates" / name).touch()
        await once(page, "Once upon a time there was a gate.")
        await page.reload()
        for text in ("You said: Hello", f"tell {name}", "Once upon a time there was a gate."):
            await once(page, text)


async def test_use_chat_a_reload_at_an_approval(browser: Browser, docs: Docs) -> None:
    path = unique("file")
    async with elsewhere(browser, docs, f"use-chat.html#{unique('chat')}") as page:
        await says(page, f"delete {path}")
        await expect(page.get_by_role("button", name="Allow")).to_be_visible()
        await page.reload()
        await page.get_by_role("button", name="Allow").click()
        await once(page, f"delete_file gave {{'deleted': '{path}'}}.")
    assert (docs.room / "notes.jsonl").read_text().count(path) == 1


# ------------------------------------------------------------------------------------------- @farhand/ai-sdk


async def test_ai_sdk_a_first_answer(browser: Browser, docs: Docs) -> None:
    async with elsewhere(browser, docs, "first.html") as page:
        await page.get_by_role("button", name="Ask").click()
        await once(page, "You said: What is the weather in Oslo?")


@pytest.mark.parametrize("answer", ["Allow", "Deny"])
async def test_ai_sdk_turn_by_turn(browser: Browser, docs: Docs, answer: str) -> None:
    await fresh_chat(docs, "report")
    async with at_home(browser, docs, "turns.html") as page:
        await page.get_by_role("button", name="Ask").click()
        await page.get_by_role("button", name=answer).click()
        await once(
            page, "take_photo gave {'name': 'photo-1.jpg'}." if answer == "Allow" else "take_photo: denied."
        )


async def test_ai_sdk_held(browser: Browser, docs: Docs) -> None:
    await fresh_chat(docs, "report")
    async with at_home(browser, docs, "held.html") as page:
        await page.get_by_role("button", name="Ask").click()
        await once(page, "open_url gave {'url': 'https://example.org/report', 'viewKey': 'v1'}.")


async def test_ai_sdk_a_line_that_breaks(browser: Browser, docs: Docs) -> None:
    await fresh_chat(docs, "report")
    gate = docs.room / "gates" / "report"
    gate.unlink(missing_ok=True)
    async with (
        FaultProxy(("127.0.0.1", docs.server.port)) as line,
        at_home(browser, docs, "lasting.html", base=f"http://127.0.0.1:{line.port}") as page,
    ):
        await page.get_by_role("button", name="Ask").click()
        await expect(page.get_by_text("Once upon a time")).to_be_visible()
        line.drop_each_after(0)
        assert line.cut()
        resume = page.get_by_role("button", name="Connection lost. Resume now")
        await expect(resume).to_be_visible()
        line.drop_each_after(None)
        # it is tried again by itself, too: once the way is free, there may be no button any more
        gate.touch()
        await once(page, "Once upon a time there was a gate.")
        await expect(resume).to_have_count(0)


async def test_ai_sdk_reload(browser: Browser, docs: Docs) -> None:
    await fresh_chat(docs, "story")
    gate = docs.room / "gates" / "story"
    gate.unlink(missing_ok=True)
    async with at_home(browser, docs, "reloaded.html") as page:
        await page.get_by_role("button", name="Ask").click()
        await expect(page.get_by_text("Once upon a time")).to_be_visible()
        await page.reload()
        await expect(page.get_by_text("Once upon a time")).to_have_count(1)
        gate.touch()
        await once(page, "Once upon a time there was a gate.")
        await once(page, "Tell me a long story")


# -------------------------------------------------------------------------------- @farhand/client and /react


async def test_client_a_first_answer_is_logged(browser: Browser, docs: Docs) -> None:
    async with elsewhere(browser, docs, "hello.html") as page:
        await page.wait_for_event(
            "console", lambda each: "You said: What is the weather in Oslo?" in each.text
        )


async def test_client_a_tool_of_the_page_opens_a_tab(browser: Browser, docs: Docs) -> None:
    await fresh_chat(docs, "report")
    async with at_home(browser, docs, "handlers.html") as page:
        await page.wait_for_event("console", lambda each: "done closed" in each.text)
        stored = await page.evaluate("async () => (await fetch('/api/chat/report')).text()")
        assert "'viewKey': 'tab'" in json.loads(stored)["messages"][-1]["parts"][-1]["text"]


async def test_client_approvals_and_answers_by_hand(browser: Browser, docs: Docs) -> None:
    path = unique("file")
    async with at_home(browser, docs, f"allow.html#{unique('chat')}") as page:
        await page.wait_for_function("() => window.thread?.state.connection.state === 'closed'")
        await page.evaluate("(text) => window.thread.send(text)", f"delete {path}")
        asking = "() => [...window.thread.state.calls.values()].some(({ phase }) => phase === 'asking')"
        await page.wait_for_function(asking)
        await page.evaluate("() => window.allow()")
        await expect(page.locator("#root")).to_contain_text(f"delete_file gave {{'deleted': '{path}'}}.")
        await page.evaluate("() => window.thread.send('Ask me to confirm something')")
        question = (
            "[...window.thread.state.facts.values()].find(({ tool }) => tool === 'user_confirm')?.callId"
        )
        await page.wait_for_function(f"() => {question} !== undefined")
        await page.evaluate(f"() => window.answer({question})")
        await expect(page.locator("#root")).to_contain_text("user_confirm gave yes.")


async def test_client_a_page_without_a_chat_runs_and_offers_tools(browser: Browser, docs: Docs) -> None:
    async with at_home(browser, docs, "connected.html") as page, docs.server.client() as http:
        await page.wait_for_function("() => window.offered?.state.state === 'offered'")
        opened = {"toolID": "open_url", "input": {"url": "https://example.org/"}, "sessionID": "t1"}
        answer = (await http.post("/client-tools/execute", json=opened)).json()
        assert answer["output"] == {"url": "https://example.org/", "viewKey": "v"}
        await page.evaluate("document.body.innerHTML = '<article id=one>Buy milk</article>'")
        [search] = [name for name in (await http.get("/client-tools/tools")).json() if "search" in name]
        answer = await http.post("/client-tools/execute", json={"toolID": search, "input": {"words": "milk"}})
        assert answer.json()["output"] == ["one"]


async def test_client_other_ways_in(browser: Browser, docs: Docs) -> None:
    await fresh_chat(docs, "report")
    async with at_home(browser, docs, "other-ways.html") as page:
        heard: list[str] = []
        page.on("console", lambda each: heard.append(each.text))
        await page.evaluate("() => window.ask()")
        assert {"meta", "pause", "content"} <= set(heard)
        await page.evaluate("() => window.live.send('Hello')")
        done = "() => window.live.state.run.state === 'done' && window.live.state.messages.length === 2"
        await page.wait_for_function(done)


@pytest.mark.parametrize("answer", ["Yes", "No"])
async def test_react_a_chat_with_cards(browser: Browser, docs: Docs, answer: str) -> None:
    await fresh_chat(docs, "report")
    async with elsewhere(browser, docs, "cards.html") as page:
        await page.get_by_role("button", name="Ask").click()
        await page.get_by_role("button", name=answer, exact=True).click()
        await once(page, f"user_confirm gave {answer.lower()}.")
        await page.reload()
        await once(page, f"user_confirm gave {answer.lower()}.")


async def test_react_an_inbox_beside_any_chat(browser: Browser, docs: Docs) -> None:
    asked = {"toolID": "user_confirm", "input": {"message": "Go on?"}, "sessionID": unique("script")}
    async with (
        at_home(browser, docs, "inbox.html") as page,
        docs.server.client() as http,
        asyncio.TaskGroup() as group,
    ):
        answer = group.create_task(http.post("/client-tools/execute", json=asked))
        await page.get_by_role("button", name="Yes", exact=True).click()
        assert (await answer).json()["output"] == "yes"
        await expect(page.get_by_role("button", name="Yes", exact=True)).to_have_count(0)


@pytest.mark.parametrize(("press", "answer"), [("Go ahead", "yes"), ("Rather not", "no")])
async def test_react_a_card_of_your_own(browser: Browser, docs: Docs, press: str, answer: str) -> None:
    async with at_home(browser, docs, f"rating.html#{unique('chat')}") as page:
        await says(page, "How was it?")
        await page.get_by_role("button", name="3").click()
        await once(page, "rate gave 3.")
        await says(page, "Ask me to confirm something")
        button = page.get_by_role("button", name=press)
        if press == "Go ahead":
            # like the card that it replaces, it is not pressed by a script
            await expect(button).to_be_enabled()
            await button.evaluate("button => button.click()")
        await button.click()
        await once(page, f"user_confirm gave {answer}.")


async def test_react_a_thread_follows_its_end_and_leaves_alone_who_has_scrolled_up(
    browser: Browser, docs: Docs
) -> None:
    story = unique("story")
    async with at_home(browser, docs, f"rating.html#{unique('chat')}") as page:
        room = page.get_by_role("region", name="Messages")
        jump = page.get_by_role("button", name="Jump to latest")
        await says(page, "\n".join(f"Line {number}" for number in range(100)))
        await expect(page.get_by_text("You said: Line 0")).to_be_attached()
        await page.wait_for_function(AT_ITS_END)
        await expect(page.get_by_role("textbox", name="Message")).to_be_in_viewport()
        await says(page, f"tell {story}")
        await expect(page.get_by_text("Once upon a time")).to_be_in_viewport()
        await room.hover()
        await page.mouse.wheel(0, -600)
        await expect(jump).to_be_visible()
        before = await room.evaluate("(room) => room.scrollTop")
        (docs.room / "gates" / story).touch()
        await expect(page.get_by_text("there was a gate.")).to_be_attached()
        assert await room.evaluate("(room) => room.scrollTop") == before
        await jump.click()
        await expect(page.get_by_text("there was a gate.")).to_be_in_viewport()
        await expect(jump).to_have_count(0)
        # a person who writes wants to see it, and a question is seen whole
        await page.mouse.wheel(0, -600)
        await expect(jump).to_be_visible()
        await says(page, "Ask me to confirm something")
        await expect(page.get_by_role("button", name="Rather not")).to_be_in_viewport()
        await page.set_viewport_size({"width": 390, "height": 500})
        await expect(page.get_by_role("button", name="Rather not")).to_be_in_viewport()
        await page.wait_for_function(AT_ITS_END)
        # the messages scroll, and the page around them does not
        assert await page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0


AT_ITS_END = """() => {
    const room = document.querySelector("[role=region]");
    const isScrolled = room.scrollHeight > room.clientHeight;
    return isScrolled && room.scrollHeight - room.scrollTop - room.clientHeight < 2;
}"""
