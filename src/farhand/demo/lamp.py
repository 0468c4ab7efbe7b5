"""The demo's street lamp report: tools on the server and in the browser, and the council's form, which is a
page of the demo's own server. Nothing leaves the machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Protocol

from farhand import Context, Toolbox, tool
from farhand.demo.browser import PickedFile, describe_file

FORM_PATH = "/demo/lamp-report"
FORM_PAGE = Template(files("farhand.demo").joinpath("lamp_report.html").read_text(encoding="utf-8"))
FIELD_CHARS = 120
MOST_VISITORS = 1_000

toolbox = Toolbox()
_server = ["http://127.0.0.1:8787"]
_visits: dict[Hashable, str] = {}


class Photo(Protocol):
    """A file as a page shows it."""

    @property
    def name(self) -> str: ...

    @property
    def data_url(self) -> str: ...


async def show_form(query: Mapping[str, str], read_image: Callable[[str], Awaitable[Photo | None]]) -> bytes:
    """The form, filled in with the place, the urgency and the photo that the query of its address names."""
    photo = await read_image(query.get("photo", ""))
    urgency = query.get("urgency", "")[:FIELD_CHARS]
    return FORM_PAGE.substitute(
        place=escape(_place(query)),
        urgency=escape(urgency) or _missing("Not chosen yet"),
        photo=_missing("No photo") if photo is None else _thumbnail(photo),
    ).encode()


def _place(query: Mapping[str, str]) -> str:
    """A place that was typed is shown as it is; a shared position gets the street of the example."""
    position = filter(None, (query.get("lat"), query.get("lon")))
    return (query.get("place") or ", ".join(("14 Mill Lane", *position)))[:FIELD_CHARS]


def _missing(words: str) -> str:
    return f'<span class="missing">{words}</span>'


def _thumbnail(photo: Photo) -> str:
    return f'<img src="{escape(photo.data_url)}" alt=""> {escape(photo.name)}'


def set_address(address: str) -> None:
    """Sets the address of the demo's server, where the form can be opened."""
    _server[0] = address.rstrip("/")


def note_visit(person: Hashable, address: str) -> None:
    """Notes by which of the server's names somebody reaches it.

    Under another name the browser would not show the form beside the chat, and not send the cookie with which
    the form gets its photo.
    """
    _visits.pop(person, None)
    if len(_visits) >= MOST_VISITORS:
        del _visits[next(iter(_visits))]
    _visits[person] = address


@toolbox.tool(idempotent=True, title="Find the lamp owner", summary="{name}")
def find_lamp_owner(street: str, context: Context) -> dict[str, str]:
    """Find out who maintains the street lamps of a street.

    Args:
        street: The street.

    Returns:
        name, email and form, the address of the page where lamps are reported.
    """
    return {
        "name": "Northgate Council, lighting team",
        "email": "lighting@northgate.example",
        "form": f"{_visits.get(context.owner, _server[0])}{FORM_PATH}",
    }


@toolbox.tool(needs_approval=True, title="Send the report to {to}", summary="Sent, reference {reference}")
def send_report(to: str, place: str, problem: str, urgency: str, photo: str) -> dict[str, str]:
    """Send the report about a street lamp. In the demo, nothing is really sent.

    Args:
        to: The recipient.
        place: Where the lamp is.
        problem: What is wrong with it.
        urgency: How urgent it is.
        photo: The name of the photo, or "none".

    Returns:
        reference, the number of the report.
    """
    digits = sum(map(ord, f"{to}{place}{problem}{urgency}{photo}"))
    return {"reference": f"NG-{digits:06d}"}


@tool(executor="frontend", card="photo", title="Photo of {subject}", summary=describe_file)
def photograph(subject: str) -> PickedFile:
    """Ask the user to take a photo of something.

    Args:
        subject: What to photograph, as the user will read it.

    Returns:
        name, type and size of the photo, and a ref under which it was stored.
    """
    raise NotImplementedError
