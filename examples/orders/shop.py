"""A shop in FastAPI: two customers, a manager, and an assistant that knows whom it works for."""

from __future__ import annotations

from fastapi import FastAPI, HTTPException
from starlette.requests import HTTPConnection

from farhand import Agent, Context, Principal, ScriptedModel, create_app, current, tool
from farhand.models import Ask, Moment, Step

PEOPLE = {
    "ann-0123456789abcdef": {"name": "ann", "role": "customer", "plan": "pro"},
    "ben-0123456789abcdef": {"name": "ben", "role": "customer", "plan": "free"},
    "mia-0123456789abcdef": {"name": "mia", "role": "manager", "plan": "staff"},
}
"""A real shop would look into its database."""

ORDERS = {"ann": {"A-1": "kettle", "A-2": "lamp"}, "ben": {"B-1": "chair"}}
REFUNDS: list[str] = []


def person_of(request: HTTPConnection) -> dict[str, str]:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    person = PEOPLE.get(token) if scheme.lower() == "bearer" else None
    if person is None:
        raise HTTPException(401)
    return person


async def authenticate(request: HTTPConnection) -> Principal:
    """Customers act for themselves. A manager may act for a customer, but only to approve: the owner is then
    the customer, and the claims name the manager."""
    person = person_of(request)
    customer = request.headers.get("x-on-behalf-of")
    if customer is None:
        return Principal("shop", person["name"], claims=dict(person))
    if person["role"] != "manager" or customer not in ORDERS:
        raise HTTPException(403)
    return Principal("shop", customer, frozenset({"approve"}), dict(person))


@tool
def list_orders() -> str:
    """List the orders of the current user."""
    mine = ORDERS.get(current().owner.subject, {})
    return ", ".join(f"{number} ({what})" for number, what in mine.items()) or "none"


@tool(needs_approval=True)
def refund(order: str, context: Context) -> str:
    """Refund an order.

    Args:
        order: The number of the order.
    """
    if order not in ORDERS.get(context.owner.subject, {}):
        return f"{context.owner.subject} has no order {order}."
    assert context.approval is not None, "a refund always has an approval"
    REFUNDS.append(order)
    return f"{order} refunded for {context.owner.subject}, approved by {context.approval.claims['name']}"


def instructions(context: Context) -> str:
    return f"You help {context.owner.subject}, a customer on the {context.claims.get('plan')} plan."


def _script(moment: Moment) -> Step:
    """A model that needs no key: it calls the tool that the message names."""
    if moment.last:
        return str(moment.last[0].output)
    word, _, order = moment.text.partition(" ")
    return Ask("refund", {"order": order}) if word == "refund" else Ask("list_orders")


assistant = Agent(ScriptedModel(_script), tools=[list_orders, refund], instructions=instructions)
hands = create_app(assistant, store="memory:", authenticate=authenticate)
app = FastAPI(lifespan=hands.lifespan)
app.mount("/assistant", hands)
