"""An approval cannot be given by accident, by a script, or long after it was meant."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.test_approvals import sent
from tests.browser.test_readable import CLAIM
from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess, farhand_process
from tests.requirement import requirement

pytestmark = requirement("approval:deliberate")

REPEATS = 30
DRAFT = "old-draft.txt"


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """The file that is in danger."""
    path = tmp_path / "scratch" / DRAFT
    path.parent.mkdir()
    path.write_text("Dear all,")
    return path


@pytest.fixture
async def own(draft: Path) -> AsyncIterator[FarhandProcess]:
    """A demo of the test's own."""
    async with farhand_process("demo", env={"FARHAND_DEMO_FOLDER": str(draft.parent)}) as server:
        yield server


async def test_a_second_enter_and_whatever_is_typed_on_allow_nothing(player: Visitor, room: Path) -> None:
    card = await asked(player, "typing")
    await expect(player.page.get_by_role("textbox", name="Message")).to_be_focused()
    for _ in range(3):
        await player.page.keyboard.press("Enter")
    await player.page.keyboard.type("and then delete all of it, a and d")
    # nor where somebody reads or copies the parameters
    await card.get_by_role("row", name="to typing").click()
    await player.page.keyboard.type("and then delete all of it, a and d")
    await is_still_asked(player, card)
    assert sent(room, "typing") == []


async def test_an_enter_that_is_held_down_allows_nothing(player: Visitor, room: Path) -> None:
    await player.new_chat()
    box = player.page.get_by_role("textbox", name="Message")
    await box.fill('send_report {"to": "held-enter", "copies": 1}')
    await box.focus()
    keys, allow = player.page.keyboard, player.card("Send report?").get_by_role("button", name="Allow once")
    await keys.down("Enter")
    # every further one is a repeat of it
    for _ in range(2_000):
        await keys.down("Enter")
        if await allow.count() and await allow.is_enabled():
            break
    for _ in range(REPEATS):
        await keys.down("Enter")
    # nor where somebody takes it to the button
    await allow.focus()
    for _ in range(REPEATS):
        await keys.down("Enter")
    await keys.up("Enter")
    await is_still_asked(player, player.card("Send report?"))
    assert sent(room, "held-enter") == []


async def test_who_types_with_the_focus_nowhere_allows_nothing(player: Visitor, room: Path) -> None:
    await player.asks('slowly send_report {"to": "nowhere", "copies": 1}')
    await player.page.evaluate("() => document.activeElement.blur()")
    card = player.card("Send report?")
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    # it is read from its heading, which no key presses
    await expect(card.get_by_role("heading")).to_be_focused()
    await player.page.keyboard.type("and then")
    await player.page.keyboard.press("Enter")
    await player.page.keyboard.press("Space")
    await is_still_asked(player, card)
    assert sent(room, "nowhere") == []


@pytest.mark.parametrize(
    "pressed",
    [
        ("Deny", "Back"),
        pytest.param(("Edit",), marks=pytest.mark.sweep),
        pytest.param(("Edit", "Undo changes"), marks=pytest.mark.sweep),
        pytest.param(("Always in this chat", "Back"), marks=pytest.mark.sweep),
    ],
)
async def test_whatever_is_typed_after_a_press_of_another_button_allows_nothing(
    player: Visitor, room: Path, pressed: tuple[str, ...]
) -> None:
    to = f"after {' '.join(pressed)}"
    card = await asked(player, to)
    for name in pressed:
        await card.get_by_role("button", name=name, exact=True).click()
    # the press has left the focus on a button of the card
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    await player.page.keyboard.type("and then")
    await is_still_asked(player, card)
    assert sent(room, to) == []


async def test_a_script_of_the_page_allows_nothing(player: Visitor, room: Path) -> None:
    card = await asked(player, "script")
    allow = card.get_by_role("button", name="Allow once")
    await allow.evaluate(SCRIPTED)
    await card.get_by_role("button", name="Always in this chat").click()
    always = card.get_by_role("button", name="Allow always in this chat")
    await expect(always).to_be_enabled()
    await always.evaluate(SCRIPTED)
    await card.get_by_role("button", name="Back").click()
    await is_still_asked(player, card)
    assert sent(room, "script") == []


SCRIPTED = """(button) => {
    button.focus();
    button.click();
    const types = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
    for (const type of types) {
        button.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, detail: 1 }));
    }
    for (const key of ["Enter", " ", "a"]) {
        button.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
        button.dispatchEvent(new KeyboardEvent("keyup", { key, bubbles: true, cancelable: true }));
    }
}"""


async def test_a_card_can_be_pressed_only_after_it_was_in_sight_for_a_moment_and_where_it_was(
    player: Visitor, room: Path
) -> None:
    await player.new_chat()
    await player.page.evaluate(NOTES_WHEN)
    await player.says('send_report {"to": "moment", "copies": 1}')
    card = player.card("Send report?")
    allow = card.get_by_role("button", name="Allow once")
    await expect(allow).to_be_enabled()
    seen, ready = await player.page.evaluate("() => [window.seenAt, window.readyAt]")
    # the watcher looks before each frame, so it may see the card a frame late
    assert ready - seen >= 550
    box = await allow.bounding_box()
    assert box is not None
    await player.page.mouse.move(box["x"] + 20, box["y"] + MOVED_PX + 10)
    await player.page.evaluate(MOVES_CARDS, MOVED_PX)
    await player.page.mouse.down()
    await player.page.mouse.up()
    await is_still_asked(player, card)
    assert sent(room, "moment") == []


async def test_a_press_that_began_while_the_button_was_off_allows_nothing_however_late_it_ends(
    player: Visitor, room: Path
) -> None:
    await player.asks("file_claim " + json.dumps({name: f"{name}@held" for name in CLAIM.split()}))
    card = player.card("File claim?")
    allow = card.get_by_role("button", name="Allow once")
    await expect(card.get_by_role("button", name="Deny")).to_be_enabled()
    # until all of its parameters were in sight
    await expect(allow).to_be_disabled()
    box = await allow.bounding_box()
    assert box is not None
    await player.page.mouse.move(box["x"] + 20, box["y"] + 10)
    await player.page.mouse.down()
    await card.get_by_role("group", name="What it runs with").evaluate(TO_ITS_END)
    await expect(allow).to_be_enabled()
    await player.page.mouse.up()
    await is_still_asked(player, card)
    assert sent(room, "pay_to@held") == []


TO_ITS_END = "(list) => list.scrollTo(0, list.scrollHeight)"


MOVED_PX = 80
MOVES_CARDS = "(by) => { document.querySelector('.fh-cards').style.marginTop = `${by}px`; }"


NOTES_WHEN = """() => {
    const look = () => {
        const button = document.querySelector("[aria-keyshortcuts=a]");
        if (button !== null) {
            window.seenAt ??= performance.now();
            window.readyAt ??= button.disabled ? undefined : performance.now();
        }
        requestAnimationFrame(look);
    };
    look();
}"""


async def test_keys_alone_are_enough_for_who_means_it(player: Visitor, room: Path) -> None:
    await asked(player, "a-key")
    await shift_tab_to(player, "Deny")
    await player.page.keyboard.press("a")
    await player.sees('send_report brought {"sent": "a-key"}.')
    await expect(player.page.get_by_role("textbox", name="Message")).to_be_focused()
    await player.says('send_report {"to": "enter-key", "copies": 1}')
    await expect(player.card("Send report?").get_by_role("button", name="Allow once")).to_be_enabled()
    await shift_tab_to(player, "Allow once")
    await player.page.keyboard.press("Enter")
    await player.sees('send_report brought {"sent": "enter-key"}.')
    assert [sent(room, "a-key"), sent(room, "enter-key")] == [[1], [1]]


async def test_a_question_is_announced_with_what_it_is(player: Visitor) -> None:
    await asked(player, "announced")
    spoken = player.main.locator("[aria-live=polite]")
    await expect(spoken.filter(has_text="Approval needed: Send report? 2 parameters.")).to_have_count(1)


async def test_always_says_what_it_covers_and_takes_a_second_press(player: Visitor, room: Path) -> None:
    card = await asked(player, "always-once")
    await card.get_by_role("button", name="Always in this chat").click()
    covers = "Every later call of send_report in this chat will run without asking you, whatever the input."
    await expect(card.get_by_text(covers)).to_be_visible()
    # whoever presses twice in a row has not read it
    await expect(card.get_by_role("button", name="Allow always in this chat")).to_be_disabled()
    await card.get_by_role("button", name="Back").click()
    await is_still_asked(player, card)
    assert sent(room, "always-once") == []


@pytest.mark.parametrize("place", ["#/inbox", "_farhand#/inbox"])
async def test_it_holds_in_every_inbox_too(
    place: str, own: FarhandProcess, draft: Path, visitors: Visitors
) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    await guest.asks(f"Delete the file {DRAFT}")
    await expect(guest.card("Delete old-draft.txt?")).to_be_visible()
    chat = guest.page.url
    await guest.page.goto(f"{own.url}/{place}")
    card = guest.page.get_by_role("group", name="Delete old-draft.txt?")
    allow = card.get_by_role("button", name="Allow once")
    await expect(allow).to_be_enabled()
    await guest.page.keyboard.type("and then")
    await guest.page.keyboard.press("Enter")
    await allow.evaluate(SCRIPTED)
    await expect(allow).to_be_enabled()
    assert is_there(draft)
    await card.get_by_role("button", name="Deny").focus()
    await guest.page.keyboard.press("a")
    await expect(card).to_have_count(0)
    await guest.page.goto(chat)
    await guest.sees(f"{DRAFT} is gone.")


async def test_a_press_where_the_last_question_of_the_inbox_was_does_not_allow_the_one_before_it(
    own: FarhandProcess, draft: Path, visitors: Visitors
) -> None:
    guest = await visitors.at(own, size=(1326, 460))
    guest.expects_to_be_cut_off()
    for name in (DRAFT, "notes.md", "todo.txt"):
        await guest.asks(f"Delete the file {name}")
        await guest.sees("Waiting for 1 answer.")
    await guest.page.goto(f"{own.url}/#/inbox")
    last = guest.card("Delete todo.txt?")
    await last.get_by_role("button", name="Always in this chat").scroll_into_view_if_needed()
    await guest.page.evaluate(TO_THE_END)
    before = guest.card("Delete notes.md?")
    allow = before.get_by_role("button", name="Allow once")
    await expect(last.get_by_role("button", name="Allow once")).to_be_enabled()
    call = await last.get_attribute("data-call")
    await guest.page.evaluate(NOTES_WHERE, await before.get_attribute("data-call"))
    other = await visitors.beside(guest, "#/inbox")
    elsewhere = other.main.locator(f'[data-call="{call}"]')
    await elsewhere.get_by_role("button", name="Deny").click()
    await elsewhere.get_by_role("button", name="Deny").click()
    # the list is shorter now, so that its end comes down with what is above it
    await guest.page.wait_for_function("() => window.movedTo !== undefined")
    place = await guest.page.evaluate("() => window.movedTo")
    await guest.page.mouse.click(place["x"] + 20, place["y"] + 10)
    await expect(last).to_have_count(0)
    await expect(allow).to_be_enabled()
    await before.get_by_role("button", name="Deny").click()
    await before.get_by_role("button", name="Deny").click()
    await expect(before).to_have_count(0)


TO_THE_END = """() => {
    for (const each of document.querySelectorAll("main *")) {
        each.scrollTop = each.scrollHeight;
    }
}"""
NOTES_WHERE = """(call) => {
    const button = document.querySelector(`[data-call="${call}"] .fh-allow`);
    const { top } = button.getBoundingClientRect();
    const look = () => {
        const now = button.getBoundingClientRect();
        window.movedTo = Math.abs(now.top - top) < 40 ? undefined : now.toJSON();
        requestAnimationFrame(look);
    };
    look();
}"""


async def test_a_press_that_brings_the_window_to_the_front_allows_nothing(
    player: Visitor, room: Path
) -> None:
    await player.page.add_init_script("document.hasFocus = () => window.isInFront !== false;")
    await player.page.reload()
    card = await asked(player, "front")
    allow = card.get_by_role("button", name="Allow once")
    box = await allow.bounding_box()
    assert box is not None
    await player.page.evaluate("() => { window.isInFront = false; }")
    # it is pale then, as a button is that cannot be pressed
    await expect(allow).to_have_attribute("aria-disabled", "true")
    await player.page.evaluate(IN_FRONT_ON_PRESS)
    await player.page.mouse.click(box["x"] + 20, box["y"] + 10)
    assert await player.page.evaluate("() => window.isInFront") is True
    await is_still_asked(player, card)
    assert sent(room, "front") == []


IN_FRONT_ON_PRESS = "() => addEventListener('pointerdown', () => { window.isInFront = true; }, true)"


# ---------------------------------------------------------------------------- answers that did not arrive


@requirement("approval:same-sign-in")
async def test_an_approval_that_was_refused_is_not_sent_after_the_next_sign_in(
    own: FarhandProcess, draft: Path, visitors: Visitors
) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    guest.forgives("401")
    guest.forgives("WebSocket")
    await guest.tries("Delete an old draft")
    card = guest.card("Delete old-draft.txt?")
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    button = card.get_by_role("button", name="Allow once")

    async def too_late(route: Route) -> None:
        await own.restart_with_another_token()
        await route.continue_()

    await guest.page.route("**/api/tools/approve", too_late)
    await button.click()
    await expect(card.get_by_text("You were signed out.")).to_be_visible()
    await expect(button).to_be_disabled()
    await guest.page.unroute("**/api/tools/approve")
    await guest.page.get_by_label("Token", exact=True).fill(own.token)
    await guest.page.get_by_role("button", name="Sign in", exact=True).click()
    # nothing of the old sign-in stays on the card
    await expect(button).to_be_enabled()
    await expect(card.get_by_role("alert")).to_have_count(0)
    await expect(card.get_by_text("signed out")).to_have_count(0)
    await is_still_asked(guest, card)
    assert is_there(draft)


@requirement("approval:same-sign-in")
async def test_nothing_can_be_decided_while_the_server_is_away(
    own: FarhandProcess, draft: Path, visitors: Visitors
) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    await guest.tries("Delete an old draft")
    card = guest.card("Delete old-draft.txt?")
    button = card.get_by_role("button", name="Allow once")
    await expect(button).to_be_enabled()
    inbox = guest.page.get_by_role("link", name="Inbox")
    await own.kill()
    await expect(card.get_by_text("The server cannot be reached.")).to_be_visible()
    await expect(button).to_be_disabled()
    assert is_there(draft)
    # a part of the page that was not loaded yet is loaded once the server is back
    await inbox.click()
    await own.start()
    await guest.sees("1 open question in all your chats")
    await own.kill()
    await expect(card.get_by_text("The server cannot be reached.")).to_be_visible()
    await expect(button).to_be_disabled()
    await own.start()
    await button.click()
    await guest.sees("All caught up.")


@requirement("approval:same-sign-in")
async def test_an_approval_that_found_no_server_is_not_sent_by_somebody_elses_sign_in(
    own: FarhandProcess, draft: Path, visitors: Visitors
) -> None:
    guest = await visitors.at(own)
    guest.expects_to_be_cut_off()
    guest.forgives("401")
    guest.forgives("WebSocket")
    await guest.tries("Delete an old draft")
    card = guest.card("Delete old-draft.txt?")
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    # the way of answers stays cut until somebody else has signed in
    await guest.page.route("**/api/tools/approve", lambda route: route.abort("connectionrefused"))
    await card.get_by_role("button", name="Allow once").click()
    await expect(card.get_by_text("Your answer did not reach the server")).to_be_visible()
    await own.restart_with_another_token()
    await visitors.beside(guest)
    await guest.page.unroute("**/api/tools/approve")
    await expect(card.get_by_text("Nothing was allowed or denied: decide again.")).to_be_visible()
    await is_still_asked(guest, card)
    assert is_there(draft)


@requirement("approval:same-sign-in")
async def test_an_approval_that_found_no_server_goes_out_when_it_is_back(guest: Visitor) -> None:
    guest.expects_to_be_cut_off()
    await guest.tries("Delete an old draft")
    await expect(guest.card("Delete old-draft.txt?").get_by_role("button", name="Allow once")).to_be_enabled()
    await guest.page.context.set_offline(True)
    await guest.presses("Allow once")
    await guest.sees("Your answer did not reach the server")
    await guest.page.context.set_offline(False)
    await expect(guest.card("Delete old-draft.txt?")).to_have_count(0)


# ------------------------------------------------------------------------------------------------ helpers


def is_there(path: Path) -> bool:
    return path.exists()


async def asked(player: Visitor, to: str) -> Locator:
    """An approval that could be given, asked for by somebody at the message box."""
    await player.asks(f'send_report {{"to": "{to}", "copies": 1}}')
    card = player.card("Send report?")
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    return card


async def is_still_asked(player: Visitor, card: Locator) -> None:
    """It can be denied, and that is its end: so nothing had been allowed."""
    await card.get_by_role("button", name="Deny").click()
    await card.get_by_role("button", name="Deny").click()
    await expect(player.card("not done").get_by_text("Denied", exact=True)).to_be_visible()


async def shift_tab_to(player: Visitor, name: str) -> None:
    """From the message box back into the cards, until a button of this name has the focus; not forever."""
    for _ in range(12):
        await player.page.keyboard.press("Shift+Tab")
        if await player.page.evaluate("() => document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"Shift+Tab does not lead to {name}")
