from __future__ import annotations

from pathlib import Path

import pytest

from farhand.core.outcome import Failure, Success
from farhand.core.principal import Owner
from farhand.core.tool import Executor
from farhand.demo import scratch_folder as scratch_module
from farhand.demo.agent import delete_file, get_current_weather, toolbox
from farhand.demo.browser import FRONTEND_TOOLS, user_confirm
from farhand.demo.scratch_folder import FOLDER_VARIABLE, scratch
from farhand.errors import Misuse
from farhand.testing import acting_for
from farhand.tools.timeouts import effective_timeout

BY_NAME = {declared.tool.name: declared for declared in FRONTEND_TOOLS}

# the kinds of cards the browser has
CARDS = {
    "open_url": "open_page",
    "user_confirm": "confirm",
    "ask_text": "text",
    "select_option": "select",
    "pick_file": "file",
    "pick_color": "color",
    "get_location": "location",
    "copy_to_clipboard": "clipboard",
    "take_photo": "photo",
    # the page shows what is asked, and takes JSON
    "read_thermometer": None,
}


@pytest.fixture
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_module, "_created", [])
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))


async def test_the_weather_is_always_sunny_and_between_65_and_75() -> None:
    seen = [await toolbox.execute("get_current_weather", {"location": "Oslo"}) for _ in range(200)]
    outputs = [outcome.output for outcome in seen if isinstance(outcome, Success)]
    assert len(outputs) == 200
    for output in outputs:
        assert isinstance(output, dict)
        temperature = output.pop("temperature")
        assert type(temperature) is int
        assert 65 <= temperature <= 75
        assert output == {"location": "Oslo", "unit": "Fahrenheit", "condition": "Sunny"}


def test_the_weather_can_be_called_like_any_function() -> None:
    assert get_current_weather("Rome")["location"] == "Rome"


def test_the_module_of_a_tool_puts_it_into_the_demo_s_toolbox() -> None:
    assert {tool.name for tool in toolbox} == {"get_current_weather", "delete_file"}
    assert all(tool.executor is Executor.SERVER for tool in toolbox)


@pytest.mark.usefixtures("_scratch")
async def test_delete_file_deletes_inside_the_scratch_folder_only(tmp_path: Path) -> None:
    with acting_for(Owner("demo", "ada"), thread="chat-1"):
        gone = await toolbox.execute("delete_file", {"path": "old-draft.txt"})
        refused = await toolbox.execute("delete_file", {"path": "../x"})
    assert gone == Success({"deleted": "old-draft.txt"})
    assert isinstance(refused, Failure)
    assert "outside the scratch folder" in refused.error
    assert str(tmp_path) not in refused.error
    assert scratch().files() == ["notes.md", "photos/holiday.txt"]


def test_deleting_and_photographing_need_a_person_s_yes() -> None:
    asking = {name for name, declared in BY_NAME.items() if declared.asks({})}
    assert asking == {"take_photo"}
    assert delete_file.asks({"path": "x"})
    assert not get_current_weather.asks({"location": "x"})


def test_every_browser_tool_names_its_card() -> None:
    assert {name: declared.tool.card for name, declared in BY_NAME.items()} == CARDS
    assert all(declared.tool.executor is Executor.FRONTEND for declared in FRONTEND_TOOLS)


def test_every_parameter_of_every_tool_is_described() -> None:
    for tool in [*toolbox, *(declared.tool for declared in FRONTEND_TOOLS)]:
        properties = tool.input_schema["properties"]
        assert isinstance(properties, dict)
        assert tool.description
        assert all(each["description"] for each in properties.values())


def test_the_body_of_a_browser_tool_is_never_executed() -> None:
    with pytest.raises(Misuse, match="runs in the frontend"):
        user_confirm(message="?")


def test_a_model_may_choose_how_long_a_page_may_take() -> None:
    tool = BY_NAME["open_url"].tool
    assert effective_timeout(tool, {"url": "https://example.com"}) == 60
    assert effective_timeout(tool, {"url": "https://example.com", "timeout_sec": 10}) == 10
