"""Photos from a camera, in the full browser: the headless shell of the other tests has none."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, FilePayload, Locator, expect

from tests.browser.chromium import chromium
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess


@pytest.fixture(scope="module")
async def browser(built: None) -> AsyncIterator[Browser]:
    async with chromium(has_camera=True) as browser:
        yield browser


async def test_a_photo_is_allowed_taken_looked_at_and_used(guest: Visitor) -> None:
    await guest.tries("Take a photo")
    await guest.presses("Allow once")
    card = guest.card("Take a photo")
    await card.get_by_role("button", name="Take photo").click()
    # it is taken by itself, in a moment
    shown = guest.main.get_by_alt_text("The photo you took")
    await expect(shown).to_be_visible()
    await card.get_by_role("button", name="Take again").click()
    await expect(shown).to_have_count(0)
    await expect(shown).to_be_visible()
    await expect(card.get_by_text("This is the photo that will be sent.")).to_be_visible()
    size = await shown.evaluate(
        "image => fetch(image.src).then((photo) => photo.blob()).then(({ size }) => size)"
    )
    await card.get_by_role("button", name="Use photo").click()
    # what was seen is what was sent
    await guest.sees(f"Got it: photo.jpg, {size} bytes of image/jpeg.")
    thumbnail = guest.rows.locator("img")
    await expect(thumbnail).to_be_visible()
    assert await thumbnail.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0


async def test_the_camera_is_off_until_a_press_even_if_allowed_and_no_button_moves_under_it(
    guest: Visitor,
) -> None:
    await guest.tries("Take a photo")
    await guest.presses("Allow once")
    card = guest.card("Take a photo")
    await expect(card.get_by_text("The camera is off until you press Take photo.")).to_be_visible()
    assert await card.locator("video").evaluate("video => video.srcObject") is None
    before = await _top(card, "Take photo")
    await card.get_by_role("button", name="Take photo").click()
    live = card.get_by_label("Live view")
    await expect(live).to_be_visible()
    assert await live.evaluate("video => video.srcObject.active")
    assert await _top(card, "Take now") == before
    await expect(card.get_by_role("button", name="Use photo")).to_be_visible()
    assert await _top(card, "Use photo") == before
    await guest.presses("Skip")


async def _top(card: Locator, name: str) -> float:
    """Of a button, from the top of its card: the chat around it may scroll."""
    button, frame = await card.get_by_role("button", name=name).bounding_box(), await card.bounding_box()
    assert button is not None
    assert frame is not None
    return round(button["y"] - frame["y"])


async def test_a_blocked_camera_says_so_and_takes_a_file_instead(
    visitors: Visitors, demo: FarhandProcess
) -> None:
    guest = await visitors.at(demo)
    await guest.forbids("camera")
    await guest.tries("Take a photo")
    await guest.presses("Allow once")
    await guest.presses("Take photo")
    card = guest.card("The camera is blocked")
    await expect(card.get_by_role("alert")).to_contain_text("Allow the camera for this site")
    await expect(card.get_by_role("button", name="Try again")).to_be_enabled()
    async with guest.page.expect_file_chooser() as choosing:
        await guest.presses("Choose a file")
    await (await choosing.value).set_files(FilePayload(name="a.jpg", mimeType="image/jpeg", buffer=b"jpg"))
    await guest.sees("Got it: a.jpg, 3 bytes of image/jpeg.")
