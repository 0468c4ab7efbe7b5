"""A server that is reached by another of its names than the one it printed."""

from __future__ import annotations

from playwright.async_api import Route, expect

from tests.browser.visitor import Visitor
from tests.requirement import requirement


@requirement("demo:offline")
async def test_the_lamp_form_opens_beside_the_chat_under_the_name_that_is_in_the_address_bar(
    guest: Visitor,
) -> None:
    async def own(route: Route) -> None:
        await route.continue_()

    here = guest.server.url.replace("127.0.0.1", "localhost")
    await guest.page.route(f"{here}/**", own)
    await guest.page.goto(f"{here}/?token={guest.server.token}")
    await guest.is_welcome()
    await guest.says("Open the lamp form")
    await guest.presses("Open")
    form = guest.page.frame_locator("iframe")
    await expect(form.get_by_role("heading", name="Report a street lamp")).to_be_visible()
