"""Tools that run in the user's browser. Their bodies are never executed: the page shows a card and
answers."""

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from farhand import tool


@dataclass
class OpenedPage:
    url: str
    # spelled as the page sends it
    viewKey: str  # noqa: N815


@dataclass
class PickedFile:
    name: str
    type: str
    size: int
    ref: str


@dataclass
class PickedColor:
    hex: str


@dataclass
class Location:
    """Coordinates from the browser, or a place that the user typed instead."""

    lat: float | None = None
    lon: float | None = None
    accuracy: float | None = None
    place: str | None = None


def describe_file(file: dict[str, Any]) -> str:
    """lamp.jpg, 214 KB."""
    size = int(file["size"])
    return f"{file['name']}, {size} bytes" if size < 1_000 else f"{file['name']}, {round(size / 1_000)} KB"


def describe_page(page: dict[str, Any]) -> str:
    """northgate.example/report."""
    address = urlsplit(str(page["url"]))
    return f"{address.netloc}{address.path}".rstrip("/")


def _describe_place(place: dict[str, Any]) -> str:
    if place.get("place"):
        return str(place["place"])
    return f"Shared once, within {round(place.get('accuracy') or 0)} m"


@tool(executor="frontend", timeout_sec=60, card="open_page", summary=describe_page)
def open_url(url: str, timeout_sec: float | None = None) -> OpenedPage:
    """Open a page beside the chat, where the user sees it.

    Args:
        url: The address, http or https.
        timeout_sec: How many seconds to wait for the page to open; omit it for one minute.

    Returns:
        url and viewKey of the page that was opened.
    """
    raise NotImplementedError


@tool(executor="frontend", card="confirm", title="{message}")
def user_confirm(message: str) -> str:
    """Ask the user a yes-or-no question and wait for the answer.

    Args:
        message: The question, as the user will read it.

    Returns:
        "yes" or "no".
    """
    raise NotImplementedError


@tool(executor="frontend", card="text", title="{question}", summary="{output}")
def ask_text(question: str, timeout_sec: float | None = None) -> str:
    """Ask the user for a short text and wait for it.

    Args:
        question: The question, as the user will read it.
        timeout_sec: How many seconds to wait for the answer; omit it for the default.

    Returns:
        What the user typed.
    """
    raise NotImplementedError


# as long as a text: both may be asked in one turn
@tool(executor="frontend", timeout_sec=300, card="select", title="{question}", summary="{output}")
def select_option(question: str, options: list[str]) -> str:
    """Let the user choose one of several options.

    Args:
        question: The question, as the user will read it.
        options: The options to choose from, without duplicates.

    Returns:
        The option that was chosen.
    """
    raise NotImplementedError


@tool(executor="frontend", card="file", title="{prompt}", summary=describe_file)
def pick_file(prompt: str) -> PickedFile:
    """Let the user pick a file from their own device and share it.

    Args:
        prompt: What to pick, as the user will read it, for example "Pick the report".

    Returns:
        name, type and size of the file, and a ref under which it was stored.
    """
    raise NotImplementedError


@tool(executor="frontend", card="color", title="{prompt}", summary="{hex}")
def pick_color(prompt: str = "Pick a colour") -> PickedColor:
    """Let the user pick a colour.

    Args:
        prompt: What the colour is for, as the user will read it.

    Returns:
        hex, the colour as "#RRGGBB".
    """
    raise NotImplementedError


@tool(executor="frontend", card="location", title="Location", summary=_describe_place)
def get_location(reason: str = "") -> Location:
    """Ask the user to share where they are, once.

    Args:
        reason: Why the location is needed, as the user will read it.

    Returns:
        lat, lon and accuracy in metres; or place, if the user typed one instead.
    """
    raise NotImplementedError


@tool(executor="frontend", card="clipboard", title="Copy to the clipboard", summary="Copied")
def copy_to_clipboard(text: str) -> bool:
    """Copy a text to the user's clipboard, if they allow it.

    Args:
        text: What to copy.

    Returns:
        true once it is copied.
    """
    raise NotImplementedError


@tool(executor="frontend", needs_approval=True, card="photo", title="Take a photo", summary=describe_file)
def take_photo(camera: Literal["front", "back"] = "front") -> PickedFile:
    """Take a photo with the user's camera. The user is asked for permission first.

    Args:
        camera: "front" faces the user, "back" faces away from them.

    Returns:
        name, type and size of the photo, and a ref under which it was stored.
    """
    raise NotImplementedError


@tool(executor="frontend", title="Thermometer in the {room}", summary="{output} °C")
def read_thermometer(room: str) -> float:
    """Ask the user to read a thermometer. The page builds the card from this schema.

    Args:
        room: The room with the thermometer.

    Returns:
        The temperature in degrees Celsius, a number.
    """
    raise NotImplementedError


FRONTEND_TOOLS = (
    open_url,
    user_confirm,
    ask_text,
    select_option,
    pick_file,
    pick_color,
    get_location,
    copy_to_clipboard,
    take_photo,
    read_thermometer,
)
