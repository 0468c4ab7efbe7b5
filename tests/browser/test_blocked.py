"""Cards when the browser or the server refuses what they need."""

from __future__ import annotations

from typing import Any

from playwright.async_api import FilePayload, Route, expect

from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess

TOO_LARGE = 10 * 1024 * 1024 + 1


async def test_a_blocked_place_says_what_to_do_and_can_be_tried_again(
    visitors: Visitors, demo: FarhandProcess
) -> None:
    guest = await visitors.at(demo)
    await guest.forbids("geolocation")
    await guest.tries("Where am I?")
    await guest.presses("Share once")
    card = guest.card("Location is blocked")
    await expect(card.get_by_text("The browser refused")).to_be_visible()
    alert = card.get_by_role("alert")
    await expect(alert).to_have_text("Allow location for this site in the address bar, then try again.")
    await guest.page.context.grant_permissions(["geolocation"])
    await guest.presses("Try again")
    await guest.sees("You are at 54.9783, -1.6178")


async def test_a_blocked_place_can_be_typed_or_skipped(visitors: Visitors, demo: FarhandProcess) -> None:
    guest = await visitors.at(demo)
    await guest.forbids("geolocation")
    await guest.tries("Where am I?")
    await guest.presses("Share once")
    card = guest.card("Location is blocked")
    await expect(card.get_by_role("button", name="Type a place")).to_be_enabled()
    await card.get_by_role("button", name="Skip").click()
    await guest.sees("Then it stays your secret: declined by the user.")


async def test_a_blocked_clipboard_says_so_and_leaves_the_way_out(guest: Visitor) -> None:
    await _forbid_clipboard(guest)
    await guest.tries("Copy a greeting")
    await guest.cards.get_by_role("button", name="Copy").click()
    card = guest.card("The clipboard is blocked")
    await expect(card.get_by_role("alert")).to_contain_text("Allow the clipboard for this site")
    await expect(card.get_by_role("button", name="Try again")).to_be_enabled()
    await card.get_by_role("button", name="No").click()
    await guest.sees("The clipboard stays as it was: declined by the user.")
    guest.forgives("permissions policy")


async def _forbid_clipboard(guest: Visitor) -> None:
    """The site's own policy says no: a browser has no other switch for it, and a press changes nothing."""
    session = await guest.page.context.new_cdp_session(guest.page)

    async def add_policy(paused: dict[str, Any]) -> None:
        policy = {"name": "permissions-policy", "value": "clipboard-write=()"}
        await session.send(
            "Fetch.continueResponse",
            {
                "requestId": paused["requestId"],
                "responseCode": paused["responseStatusCode"],
                "responseHeaders": [*paused["responseHeaders"], policy],
            },
        )

    session.on("Fetch.requestPaused", add_policy)
    pattern = {"urlPattern": f"{guest.server.url}/", "requestStage": "Response"}
    await session.send("Fetch.enable", {"patterns": [pattern]})
    await guest.page.reload()


async def test_a_file_over_the_limit_is_not_sent_at_all(guest: Visitor) -> None:
    await guest.tries("Pick a file")
    sent: list[str] = []
    guest.page.on("request", lambda request: sent.append(request.url))
    large = FilePayload(name="film.zip", mimeType="application/zip", buffer=bytes(TOO_LARGE))
    await guest.cards.locator("input[type=file]").set_input_files(large)
    await expect(guest.cards.get_by_role("alert")).to_have_text("film.zip is larger than 10 MB. too_large")
    assert not any("/api/files" in url for url in sent)
    await expect(guest.main.get_by_role("button", name="Choose a file")).to_be_enabled()


async def test_a_kind_of_file_that_the_server_refuses_is_reported_on_the_card(guest: Visitor) -> None:
    await guest.tries("Pick a file")
    film = FilePayload(name="film.mp4", mimeType="video/mp4", buffer=b"a film")
    await guest.cards.locator("input[type=file]").set_input_files(film)
    alert = guest.cards.get_by_role("alert")
    await expect(alert).to_contain_text("Files of type 'video/mp4' are not accepted. Accepted types: image/*")
    # the page behind the code is the server's own
    async with guest.page.context.expect_page() as opening:
        await alert.get_by_role("link", name="wrong_type").click()
    explained = (await opening.value).get_by_text("a file of a type that the message names")
    await expect(explained).to_be_visible()
    guest.forgives("415")
    text = FilePayload(name="page.txt", mimeType="text/plain", buffer=b"words")
    await guest.cards.locator("input[type=file]").set_input_files(text)
    await guest.sees("page.txt has 5 bytes")


async def test_an_upload_that_breaks_off_loses_nothing(guest: Visitor) -> None:
    guest.expects_to_be_cut_off()
    await guest.tries("Pick a file")

    async def breaks(route: Route) -> None:
        await route.abort("connectionreset")

    await guest.page.route("**/api/files", breaks, times=1)
    text = FilePayload(name="words.txt", mimeType="text/plain", buffer=b"words")
    await guest.cards.locator("input[type=file]").set_input_files(text)
    await expect(guest.cards.get_by_role("alert")).to_contain_text("did not reach the server")
    await guest.cards.locator("input[type=file]").set_input_files(text)
    await guest.sees("words.txt has 5 bytes")


async def test_a_page_of_a_new_host_waits_for_a_press_and_one_that_was_shown_opens_automatically(
    guest: Visitor,
) -> None:
    await guest.finds_other_sites()
    await guest.asks("Open https://pages.example/one")
    await guest.sees("First link to this site in this chat, so it needs your click.")
    await expect(guest.page.locator("iframe")).to_have_count(0)
    await guest.presses("Open")
    await guest.sees("The page is open beside us: https://pages.example/one")
    await guest.says("Open https://pages.example/two")
    await guest.sees("The page is open beside us: https://pages.example/two")
    await expect(guest.page.locator("iframe")).to_have_attribute("src", "https://pages.example/two")


async def test_an_answer_that_the_server_refuses_is_shown_and_can_be_changed(player: Visitor) -> None:
    await player.asks('set_prices {"prices": {"bread": 1}}')
    card = player.card("Set prices?")
    await card.get_by_role("button", name="Edit").click()
    field = card.get_by_role("textbox", name="Prices")
    await field.fill('{"bread": "many"}')
    await card.get_by_role("button", name="Allow once").click()
    await player.sees("`prices.bread` must be an integer, got a string. Nothing was approved.")
    await player.sees("Nothing was allowed or denied: decide again.")
    player.forgives("400")
    async with player.page.context.expect_page() as explained:
        await card.get_by_role("link", name="invalid").click()
    await expect((await explained.value).get_by_text("nothing was applied")).to_be_visible()
    # what was typed is still there
    await expect(field).to_have_value('{"bread": "many"}')
    await field.fill('{"bread": 2}')
    await player.presses("Allow once")
    await player.sees('set_prices brought {"set": {"bread": 2}}.')
