"""One tab, two people: what the page stored for the first is not shown to the second."""

from __future__ import annotations

from playwright.async_api import Browser, Page, expect
from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel, create_app, tool
from farhand.models.scripted import Ask
from tests.faces.served import listening
from tests.requirement import requirement
from tests.unit.agent.stage import comes_true

KEPT = "() => Object.keys(sessionStorage).filter((key) => key.startsWith('farhand:draft:'))"


@tool(executor="frontend", card="text")
def ask_text(question: str) -> str:
    """Ask for a text.

    Args:
        question: What to ask.

    Returns:
        What was typed.
    """
    raise NotImplementedError


@tool(needs_approval=True)
def erase(path: str) -> str:
    """Erase a file.

    Args:
        path: Which one.
    """
    return path


async def authenticate(request: HTTPConnection) -> Principal | None:
    who = request.cookies.get("who")
    return None if who is None else Principal("acme", who)


@requirement("ui:another-reader")
async def test_a_draft_of_one_person_is_gone_when_another_one_signs_in(browser: Browser) -> None:
    agent = Agent(
        ScriptedModel([Ask("ask_text", {"question": "Which word?"}), "."]), frontend_tools=[ask_text]
    )
    app = create_app(agent, store="memory:", authenticate=authenticate)
    async with listening(app) as url:
        context = await browser.new_context()
        try:
            await context.add_cookies([{"name": "who", "value": "ada", "url": url}])
            page = await context.new_page()
            await page.goto(url)
            await page.get_by_role("textbox").first.fill("Ask me")
            await page.keyboard.press("Enter")
            card = page.get_by_role("group").filter(has_text="Which word?")
            await card.get_by_role("textbox").fill("hunter2")
            await comes_true(lambda: _has_draft(page))
            await page.reload()
            await expect(card.get_by_role("textbox")).to_have_value("hunter2")
            assert await _has_draft(page), "a reload keeps it"
            await context.add_cookies([{"name": "who", "value": "bob", "url": url}])
            await page.reload()
            await expect(page).to_have_url(f"{url}/")
            await expect(page.get_by_role("textbox")).to_be_enabled()
            await expect(card).to_have_count(0)
            await expect(page.get_by_text("Ask me")).to_have_count(0)
            assert not await _has_draft(page)
        finally:
            await context.close()


@requirement("ui:another-reader")
async def test_a_press_under_another_sign_in_allows_nothing_and_says_so(browser: Browser) -> None:
    agent = Agent(ScriptedModel([Ask("erase", {"path": "a.txt"}), "Erased."]), tools=[erase])
    app = create_app(agent, store="memory:", authenticate=authenticate)
    async with listening(app) as url:
        context = await browser.new_context()
        try:
            await context.add_cookies([{"name": "who", "value": "ada", "url": url}])
            page = await context.new_page()
            await page.goto(url)
            await page.get_by_role("textbox").first.fill("Erase it")
            await page.keyboard.press("Enter")
            main = page.get_by_role("main")
            await expect(main.get_by_role("button", name="Allow once")).to_be_visible()
            # nobody reads its stream any more, so the run is saved
            await page.reload()
            await expect(main.get_by_text("Saved for later", exact=True)).to_be_visible()
            await context.add_cookies([{"name": "who", "value": "bob", "url": url}])
            await main.get_by_role("button", name="Allow once").click()
            await expect(main.get_by_text("Deleted, or asked under another sign-in")).to_be_visible()
            await expect(main.locator("> header").get_by_text("Thinking")).to_have_count(0)
            await context.add_cookies([{"name": "who", "value": "ada", "url": url}])
            await page.reload()
            await main.get_by_role("button", name="Allow once").click()
            await expect(main.get_by_text("Erased.")).to_be_visible()
        finally:
            await context.close()


async def _has_draft(page: Page) -> bool:
    return len(await page.evaluate(KEPT)) == 1
