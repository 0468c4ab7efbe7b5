"""All open questions of all chats in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.visitor import Visitor, Visitors
from tests.process import FarhandProcess, farhand_process


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[FarhandProcess]:
    """A demo of the test's own: an inbox is over all chats."""
    async with farhand_process("demo", env={"FARHAND_DEMO_FOLDER": str(tmp_path / "scratch")}) as server:
        yield server


async def test_questions_of_all_chats_stand_oldest_first_and_are_answered_there(
    own: FarhandProcess, visitors: Visitors
) -> None:
    guest = await visitors.at(own)
    await asks(guest, "Ask me my name", "Help me choose lunch")
    await to_inbox(guest)
    await guest.sees("2 open questions in all your chats")
    titles = guest.cards.get_by_role("heading")
    await expect(titles).to_have_text(["What is your name?", "What shall it be for lunch?"])
    await guest.card("What is your name?").get_by_role("textbox").fill("Ada")
    await guest.card("What is your name?").get_by_role("button", name="Send answer").click()
    await guest.sees("1 open question in all your chats")
    await guest.page.get_by_role("link", name="Ask me my name").click()
    await guest.sees("Nice to meet you, Ada.")


async def test_several_are_allowed_together_only_when_each_was_picked_and_the_tool_is_the_same(
    own: FarhandProcess, visitors: Visitors
) -> None:
    guest = await visitors.at(own)
    await asks(guest, "Delete the file old-draft.txt", "Delete the file notes.md", "Take a photo")
    await to_inbox(guest)
    await guest.sees("3 open questions in all your chats")
    picks = guest.main.get_by_role("checkbox", name="Pick")
    # a photo is the only one of its kind: there is nothing to pick it with
    await expect(picks).to_have_count(2)
    assert not any([await each.is_checked() for each in await picks.all()])
    await expect(guest.main.get_by_role("group", name="Picked questions")).to_have_count(0)
    await picks.nth(0).check()
    await picks.nth(1).check()
    # a changed one would run as it was asked: it is allowed on its own card, or not changed
    changed = guest.card("Delete notes.md?")
    await changed.get_by_role("button", name="Edit").click()
    await expect(guest.main.get_by_text("You changed one of them.")).to_be_visible()
    await expect(guest.main.get_by_role("button", name="Allow these 2 once")).to_be_disabled()
    await changed.get_by_role("button", name="Undo changes").click()
    await guest.presses("Allow these 2 once")
    await guest.sees("1 open question in all your chats")
    await guest.page.get_by_role("link", name="Delete the file notes.md").click()
    await guest.sees("notes.md is gone.")


async def test_an_empty_inbox_says_so_and_the_badge_counts(own: FarhandProcess, visitors: Visitors) -> None:
    guest = await visitors.at(own, "#/inbox")
    await guest.sees("All caught up.")
    other = await visitors.beside(guest)
    await other.tries("Yes or no")
    await guest.sees("1 open question in all your chats")
    await expect(guest.page.get_by_role("link", name="Inbox")).to_contain_text("1 waiting")
    await other.presses("Yes")
    await guest.sees("All caught up.")


async def asks(guest: Visitor, *prompts: str) -> None:
    for prompt in prompts:
        await guest.asks(prompt)
        await guest.sees("Waiting for 1 answer.")


async def to_inbox(guest: Visitor) -> None:
    await guest.page.get_by_role("link", name="Inbox").click()
