"""Attacks by a model, a tool or another site on the chat page."""

from __future__ import annotations

import json
import re

from playwright.async_api import expect

from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess
from tests.requirement import requirement

pytestmark = requirement("page:safety")

HOSTILE = (
    "javascript:document.title='run'",
    "JaVaScRiPt:document.title='run'",
    " javascript:document.title='run'",
    "java\tscript:document.title='run'",
    "data:text/html,<script>document.title='run'</script>",
    "vbscript:msgbox(1)",
    "file:///etc/passwd",
    "blob:https://pages.example/4c3f",
    "about:blank",
    "filesystem:https://pages.example/a",
    "//pages.example/no-scheme",
    "https:",
    "https://bank.example@pages.example/login",
    "no address at all",
)


async def test_an_address_that_is_not_http_is_not_opened(player: Visitor) -> None:
    await player.asks("\n".join(f"open_url {json.dumps({'url': url})}" for url in HOSTILE))
    cards = player.card("This page cannot be opened")
    await expect(cards).to_have_count(len(HOSTILE))
    await expect(cards.get_by_text("Only http and https pages open").first).to_be_visible()
    await expect(player.cards.get_by_role("link")).to_have_count(0)
    for left in range(len(HOSTILE), 0, -1):
        await expect(cards.get_by_role("button", name="Do not open it", disabled=False)).to_have_count(left)
        await cards.get_by_role("button", name="Do not open it", disabled=False).first.click()
    await player.sees("only http and https addresses are opened.")
    await expect(player.page.locator("iframe")).to_have_count(0)
    await expect(player.main.get_by_role("button", name="Open")).to_have_count(0)
    # the name of the chat, and not what a script would have written there
    await expect(player.page).to_have_title(re.compile(" · The stage$"))
    assert len(player.page.context.pages) == 1


async def test_an_address_shows_its_host_before_it_opens(player: Visitor) -> None:
    await player.asks('open_url {"url": "https://pages.example/?next=https://bank.example"}')
    await expect(player.card("Open pages.example")).to_be_visible()


async def test_a_page_beside_the_chat_is_in_a_sandbox_and_learns_nothing(guest: Visitor) -> None:
    await guest.finds_other_sites()
    await guest.asks("Open https://pages.example/one")
    await guest.presses("Open")
    frame = guest.page.get_by_title("Page: pages.example")
    sandbox = (await frame.get_attribute("sandbox") or "").split()
    assert "allow-scripts" in sandbox
    assert "allow-top-navigation" not in sandbox
    assert "allow-modals" not in sandbox
    await expect(frame).to_have_attribute("referrerpolicy", "no-referrer")
    panel = guest.page.get_by_role("complementary")
    for link in await panel.get_by_role("link", name="Open in its own tab").all():
        assert {"noopener", "noreferrer"} <= set((await link.get_attribute("rel") or "").split())


async def test_a_page_of_this_very_server_gets_no_origin_of_its_own(player: Visitor) -> None:
    await player.asks(f'open_url {{"url": "{player.server.url}/api/about"}}')
    await player.presses("Open")
    frame = player.page.locator("iframe")
    assert "allow-same-origin" not in (await frame.get_attribute("sandbox") or "")
    # our own answers are never framed, and the browser says so
    player.forgives("frame-ancestors")
    player.forgives("Framing")
    player.forgives("sandboxed")


async def test_words_of_tools_and_models_are_never_html(player: Visitor) -> None:
    markup = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    await player.asks(f"user_confirm {json.dumps({'message': markup})}")
    card = player.card(markup)
    await expect(card).to_be_visible()
    await expect(card.locator("img, script")).to_have_count(0)
    await player.presses("Yes")
    await player.sees('user_confirm brought "yes".')
    await player.rows.locator("summary").click()
    await expect(player.main.locator("img, script")).to_have_count(0)
    assert await player.page.title() != "run"


async def test_a_tool_named_like_a_property_of_every_object_runs_nothing(player: Visitor) -> None:
    await player.asks('constructor {"a": 1}\n__proto__ {"a": 1}\ntoString {"a": 1}')
    await player.sees("constructor brought nothing: failure")
    await player.sees("toString brought nothing: failure")


async def test_no_script_can_read_the_token(player: Visitor) -> None:
    cookies = await player.page.evaluate("document.cookie")
    # the name of the sign-in, which opens nothing
    assert re.fullmatch(r"farhand_\d+_sign_in=[\w-]{16}", cookies)
    assert player.server.token not in cookies
    assert player.server.token not in player.page.url
    held = await player.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert player.server.token not in held
    cookie, name = sorted(await player.page.context.cookies(), key=lambda each: str(each.get("name")))
    assert [cookie.get("httpOnly"), name.get("httpOnly")] == [True, False]
    assert cookie.get("sameSite") == name.get("sameSite") == "Strict"


async def test_the_policy_stops_an_inline_script_and_a_script_from_elsewhere(player: Visitor) -> None:
    ran = await player.page.evaluate(
        """() => new Promise((done) => {
          const inline = document.createElement("script");
          inline.textContent = "window.ran = true";
          document.body.append(inline);
          const outside = document.createElement("script");
          outside.src = "https://pages.example/script.js";
          outside.onerror = () => done(window.ran === true);
          outside.onload = () => done(true);
          document.body.append(outside);
        })"""
    )
    assert not ran
    assert len([each for each in player.complaints if "Content Security Policy" in each]) >= 2
    player.forgives("Content Security Policy")


async def test_the_pages_need_nothing_from_outside(visitors: Visitors, demo: FarhandProcess) -> None:
    guest = await visitors.at(demo)
    asked: list[str] = []
    guest.page.on("request", lambda request: asked.append(request.url))
    await guest.page.reload()
    await guest.is_welcome()
    await guest.page.goto(f"{demo.url}/_farhand")
    await expect(guest.page.get_by_text("Live", exact=True)).to_be_visible()
    assert asked
    assert [url for url in asked if not url.startswith(demo.url)] == []
