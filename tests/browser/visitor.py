"""A simulated person who uses the pages: asks, reads, presses. Knows what the pages show, not how they are
made.

Every wait is for a fact on the page, with a generous bound. Whatever the browser complains about, a breach of
the page's policy too, is kept and fails the test at its end.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Route, expect

from tests.process import FarhandProcess

SEEN_WITHIN_MS = 25_000
ELSEWHERE = re.compile(r"^https?://(?!127\.0\.0\.1[:/])")
FOREIGN_PAGE = """<!doctype html><title>A page</title>
<body style="font:16px/1.5 sans-serif;margin:2rem"><h1>Another site</h1><p>Served to the test alone.</p>"""
# the browser's own words for a server that is away: expected where a test takes it away
CUT_OFF = re.compile(r"net::ERR_(CONNECTION|CONTENT|INTERNET|FAILED|EMPTY|INCOMPLETE|ABORTED|NETWORK|SOCKET)")

MORE_SAMPLES = {
    "Yes or no": "Ask me to confirm something",
    "My name": "Ask me my name",
    "Choose lunch": "Help me choose lunch",
    "Pick a colour": "Let me pick a colour",
    "Two things at once": "Ask me two things at once",
    "Make me a coffee": "Make me a coffee",
    "A long story": "Tell me a long story",
    "Open a page": "Open https://example.com",
}
"""What the demo answers, too."""

Scheme = Literal["light", "dark"]
expect.set_options(timeout=SEEN_WITHIN_MS)


class Visitor:
    """One tab."""

    def __init__(self, page: Page, server: FarhandProcess) -> None:
        self.page = page
        self.server = server
        self.complaints: list[str] = []
        self.forgiven: list[str] = []
        self.may_be_cut_off = False
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"{error}"))

    # ----------------------------------------------------------------------------------------------- where to

    async def enters(self, path: str = "") -> None:
        """Signs in as the printed address does, and goes to `path`."""
        await self.page.goto(f"{self.server.url}/?token={self.server.token}")
        await expect(self.page.get_by_text("This browser is connected")).to_have_count(1)
        if path:
            await self.page.goto(f"{self.server.url}/{path}")

    async def new_chat(self) -> None:
        await self.page.goto(f"{self.server.url}/#/")
        await self.is_welcome()

    async def is_welcome(self) -> None:
        """The first visit: the agent's title, and what it can be asked."""
        await expect(self.main.locator("[data-welcome] h2")).to_be_visible()

    async def asks(self, text: str) -> None:
        """Says it in a new chat."""
        await self.new_chat()
        await self.says(text)

    async def says(self, text: str) -> None:
        box = self.page.get_by_role("textbox", name="Message")
        await box.fill(text)
        await box.press("Enter")

    async def tries(self, sample: str) -> None:
        """Presses one of the things to try, or says one of those that a page has no room for."""
        if sample in MORE_SAMPLES:
            await self.asks(MORE_SAMPLES[sample])
            return
        await self.new_chat()
        await self.main.get_by_role("button", name=sample).click()

    @property
    def thread_id(self) -> str:
        return self.page.url.rpartition("#/chat/")[2]

    # ------------------------------------------------------------------------------------ what is on the page

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def cards(self) -> Locator:
        return self.main.locator(".fh-card")

    @property
    def rows(self) -> Locator:
        return self.main.locator(".fh-row")

    def card(self, title: str | re.Pattern[str]) -> Locator:
        return self.main.get_by_role("group", name=title)

    async def sees(self, text: str | re.Pattern[str]) -> None:
        await expect(self.main.get_by_text(text).first).to_be_visible()

    async def sees_state(self, words: str) -> None:
        """The run's state, in the top bar."""
        await expect(self.main.locator("> header").get_by_text(words, exact=True)).to_be_visible()

    async def presses(self, name: str) -> None:
        await self.main.get_by_role("button", name=name, exact=True).first.click()

    async def allows_always(self) -> None:
        """Allows the first approval for the whole chat, in its two presses."""
        await self.presses("Always in this chat")
        await self.presses("Allow always in this chat")

    # ----------------------------------------------------------------------------------------------- the rest

    def expects_to_be_cut_off(self) -> None:
        self.may_be_cut_off = True

    async def finds_other_sites(self) -> None:
        """From now on they answer; before, their names are unknown. The browser then has no cache and every
        request takes a detour, so it is for tests that open such a page."""
        await self.page.context.route(ELSEWHERE, _foreign)

    async def forbids(self, ability: str) -> None:
        """Says no for this site in the browser, once and for all."""
        session = await self.page.context.new_cdp_session(self.page)
        permission = {"permission": {"name": ability}, "setting": "denied", "origin": self.server.url}
        await session.send("Browser.setPermission", permission)

    def forgives(self, words: str) -> None:
        """The browser notes every refusal, sooner or later; one that a test asked for is no complaint."""
        self.forgiven.append(words)

    @property
    def unexpected(self) -> list[str]:
        grave = [each for each in self.complaints if not any(words in each for words in self.forgiven)]
        return [each for each in grave if not (self.may_be_cut_off and CUT_OFF.search(each))]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text}")


class Visitors:
    """Opens tabs; each in a profile of its own, unless it is told to join another one."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._visitors: list[Visitor] = []

    async def at(
        self,
        server: FarhandProcess,
        path: str = "",
        *,
        scheme: Scheme = "light",
        size: tuple[int, int] = (1326, 896),
        allowed: tuple[str, ...] = (),
        scale: float = 1,
    ) -> Visitor:
        """A person in a profile of its own, signed in. `allowed`: what the browser lets this site do."""
        context = await self._browser.new_context(
            color_scheme=scheme,
            viewport={"width": size[0], "height": size[1]},
            device_scale_factor=scale,
            permissions=list(allowed),
            geolocation={"latitude": 54.97832, "longitude": -1.61779, "accuracy": 12},
            reduced_motion="reduce",
            locale="en-GB",
        )
        context.set_default_timeout(SEEN_WITHIN_MS)
        self._contexts.append(context)
        return await self._tab(context, server, path)

    async def beside(self, other: Visitor, path: str = "") -> Visitor:
        """A second tab of the same person."""
        return await self._tab(other.page.context, other.server, path)

    async def leave(self) -> None:
        """Closes all tabs; what the browser complained about in any of them fails the test."""
        for context in self._contexts:
            await context.close()
        complaints = [each for visitor in self._visitors for each in visitor.unexpected]
        assert not complaints, f"the browser complained: {complaints}"

    async def _tab(self, context: BrowserContext, server: FarhandProcess, path: str) -> Visitor:
        visitor = Visitor(await context.new_page(), server)
        self._visitors.append(visitor)
        await visitor.enters(path)
        return visitor


@asynccontextmanager
async def visitors_of(browser: Browser) -> AsyncIterator[Visitors]:
    visitors = Visitors(browser)
    yield visitors
    await visitors.leave()


async def _foreign(route: Route) -> None:
    """The world outside, as far as a test has one: pages that are shown beside the chat, and nothing else."""
    if route.request.resource_type == "document":
        await route.fulfill(body=FOREIGN_PAGE, content_type="text/html")
    else:
        await route.abort()
