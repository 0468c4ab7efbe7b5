"""An office: a script pays invoices, and a person approves each payment on a page. No model.

The script is plain Python and calls two tools: `show_invoice` runs in the page, and `pay` runs here once the
person has approved it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from farhand import Owner, Principal, Success, Toolbox, create_app, current

OFFICE = Owner("office", "ada")
INVOICES = {"I-7": 120, "I-8": 80}
SESSION = secrets.token_urlsafe()
"""A real office would have a table of sessions."""

Script: TypeAlias = Callable[[], Coroutine[None, None, list[str]]]

toolbox = Toolbox()


@toolbox.tool(executor="frontend")
def show_invoice(number: str, amount: int) -> dict[str, str]:
    """Show an invoice on the page.

    Args:
        number: The number of the invoice.
        amount: In euros.

    Returns:
        shown: the line that the page shows.
    """
    raise NotImplementedError


def make_office(folder: Path, pages: Path) -> tuple[Starlette, Script]:
    """The office's own app with farhand mounted in it, and its script. Payments are written to this
    folder."""

    @toolbox.tool(needs_approval=True)
    def pay(number: str, amount: int) -> str:
        """Pay an invoice.

        Args:
            number: The number of the invoice.
            amount: In euros.
        """
        with (folder / "payments.txt").open("a") as payments:
            payments.write(f"{number} {amount} {current().idempotency_key}\n")
        return f"paid {amount} for {number}"

    def authenticate(request: HTTPConnection) -> Principal | None:
        is_ada = secrets.compare_digest(request.cookies.get("office", ""), SESSION)
        return Principal(OFFICE.tenant, OFFICE.subject) if is_ada else None

    async def page(request: Request) -> Response:
        response = FileResponse(pages / "index.html")
        # a real office would ask for a password first
        response.set_cookie("office", SESSION, httponly=True, samesite="strict")
        return response

    hands = create_app(toolbox, store=f"sqlite:///{folder}/hands.db", authenticate=authenticate)
    app = Starlette(
        routes=[
            Route("/", page),
            Mount("/assets", StaticFiles(directory=pages / "assets")),
            Mount("/farhand", hands),
        ],
        lifespan=hands.lifespan,
    )

    async def pay_invoices() -> list[str]:
        """Each call has a key, so the script can be stopped and run again: nothing is paid twice."""
        outcomes: list[str] = []
        for number, amount in INVOICES.items():
            invoice = {"number": number, "amount": amount}
            for tool in ("show_invoice", "pay"):
                key = f"{tool}-{number}"
                outcome = await hands.call(tool, invoice, thread="invoices", key=key, owner=OFFICE)
                outcomes.append(str(outcome.output if isinstance(outcome, Success) else outcome))
        return outcomes

    return app, pay_invoices
