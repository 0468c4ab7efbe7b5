"""The quick start works as printed: declare, run, answer in the chat page, with curl and from Python."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farhand.wire.sse import parse
from tests.browser.chromium import chromium
from tests.requirement import requirement

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCK = re.compile(r"^```(\w+)(?: ([\w.]+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2] or "", found[3]) for found in BLOCK.finditer(README)]
SEEN_WITHIN_MS = 30_000
FARHAND = Path(sys.executable).parent / "farhand"


@pytest.fixture
def quick_start(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """The folder of a newcomer: the file as printed, and the server started as printed, on a free port."""
    [program] = [text for kind, name, text in BLOCKS if kind == "python" and name]
    (tmp_path / "assistant.py").write_text(program)
    [command] = [text.strip() for kind, name, text in BLOCKS if kind == "sh" and name == "server"]
    arguments = command.replace("--port 8787", "--port 0").split()[1:]
    with subprocess.Popen(
        [FARHAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        told = ""
        for line in server.stdout:
            told += line
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            pytest.fail(f"the server did not start: {told}")
        yield tmp_path, int(found[1])
        server.terminate()
        server.communicate(timeout=20)


@pytest.mark.browser
@requirement("docs:quick-start")
async def test_the_card_of_the_quick_start_is_answered_in_the_chat_page(
    quick_start: tuple[Path, int],
) -> None:
    _, port = quick_start
    assert "http://127.0.0.1:8787/" in README
    async with chromium() as browser:
        page = await browser.new_page()
        page.set_default_timeout(SEEN_WITHIN_MS)
        await page.goto(f"http://127.0.0.1:{port}/")
        message = page.get_by_role("textbox", name="Message")
        await message.fill("Send the report")
        await message.press("Enter")
        card = page.get_by_role("group", name="Send the report now?")
        await card.get_by_role("button", name="Yes").click()
        await page.get_by_text("All right: yes.").first.wait_for()


@requirement("docs:quick-start")
def test_the_quick_start_works_with_curl(quick_start: tuple[Path, int]) -> None:
    folder, port = quick_start
    ask, answer = (text for kind, name, text in BLOCKS if kind == "sh" and not name)
    asked = _shell(ask.replace(":8787", f":{port}"), folder)
    assert "awaiting_frontend_tools" in asked
    assert "Send the report now?" in asked
    told = _shell(answer.replace(":8787", f":{port}"), folder)
    assert "All right: yes." in "".join(event.data for event in parse([told.encode()]))
    assert "repeated" in _shell(answer.replace(":8787", f":{port}"), folder)


@requirement("docs:quick-start")
def test_the_quick_start_works_from_python_too(tmp_path: Path) -> None:
    [program] = [text for kind, name, text in BLOCKS if kind == "python" and name]
    [use] = [text for kind, name, text in BLOCKS if kind == "python" and not name]
    (tmp_path / "assistant.py").write_text(program)
    (tmp_path / "use.py").write_text(use)
    ran = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=True
    )
    assert "awaiting_frontend_tools" in ran.stdout
    assert "All right: yes." in ran.stdout


def _shell(commands: str, folder: Path) -> str:
    ran = subprocess.run(
        ["bash", "-e", "-c", commands], cwd=folder, capture_output=True, text=True, timeout=50, check=True
    )
    return ran.stdout
