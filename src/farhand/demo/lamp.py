"""The street lamp that is reported: tools on the server and in the browser, and the council's form, which is
a page of the demo's own server. Nothing leaves the machine."""

from __future__ import annotations

from importlib.resources import files

from farhand import Toolbox, tool
from farhand.demo.browser import PickedFile, describe_file

FORM_PATH = "/demo/lamp-report"
FORM_PAGE = files("farhand.demo").joinpath("lamp_report.html").read_bytes()

toolbox = Toolbox()
_server = ["http://127.0.0.1:8787"]


def set_address(address: str) -> None:
    """Where the demo is served, so that the form can be opened there."""
    _server[0] = address.rstrip("/")


@toolbox.tool(idempotent=True, title="Find the lamp owner", summary="{name}")
def find_lamp_owner(street: str) -> dict[str, str]:
    """Find out who looks after the street lamps of a street.

    Args:
        street: The street.

    Returns:
        name, email and form, the address of the page where lamps are reported.
    """
    return {
        "name": "Northgate Council, lighting team",
        "email": "lighting@northgate.example",
        "form": f"{_server[0]}{FORM_PATH}",
    }


@toolbox.tool(needs_approval=True, title="Send the report to {to}", summary="Sent, reference {reference}")
def send_report(to: str, place: str, problem: str, urgency: str, photo: str) -> dict[str, str]:
    """Send the report about a street lamp. In the demo it is kept here and sent nowhere.

    Args:
        to: Who gets it.
        place: Where the lamp is.
        problem: What is wrong with it.
        urgency: How urgent it is.
        photo: The name of the photo.

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
