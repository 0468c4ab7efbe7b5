"""Over plain http, on a host name, where browsers send fewer headers than to localhost."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import expect

from tests.browser.chromium import chromium
from tests.browser.visitor import SEEN_WITHIN_MS
from tests.process import farhand_process
from tests.requirement import requirement

NAME = "box.example"
MAPPED = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"


@requirement("auth:origin")
async def test_a_signed_in_person_asks_and_answers_on_a_host_name_without_https(
    built: None, room: Path
) -> None:
    environment = {"TEST_ROOM": str(room)}
    async with (
        farhand_process("tests.browser.stage:agent", "--allow-host", NAME, env=environment) as server,
        chromium(MAPPED) as browser,
    ):
        page = await browser.new_page()
        page.set_default_timeout(SEEN_WITHIN_MS)
        home = f"http://{NAME}:{server.port}/"
        await page.goto(f"{home}?token={server.token}")
        assert not await page.evaluate("isSecureContext"), "as far as the browser knows, not this machine"
        await expect(page.get_by_text("This browser is connected")).to_have_count(1)
        box = page.get_by_role("textbox", name="Message")
        await box.fill('user_confirm {"message": "Go on?"}')
        await box.press("Enter")
        await page.get_by_role("button", name="Yes", exact=True).click()
        await expect(page.get_by_text('user_confirm brought "yes".')).to_be_visible()
        await page.reload()
        await expect(page.get_by_text('user_confirm brought "yes".')).to_be_visible()
        await page.get_by_role("link", name="Inspect run").click()
        await expect(page.get_by_role("heading", name="user_confirm").first).to_be_visible()
