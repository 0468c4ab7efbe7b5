"""P12: settling a large result (guarded reading, schema check, digest), against its schema check alone."""

from __future__ import annotations

import asyncio
import json
import time

import jsonschema_rs
import msgspec

from bench.apps.whole import make_app
from bench.pending import OWNER, Pending
from bench.server_process import run_alone
from bench.table import Effort, Line, us
from farhand import tool
from farhand.core.result import Accepted
from farhand.core.settings import Limits
from farhand.faces.ack.decode import decode_ack

RESULTS = 300
ARTICLES = 440


class Row(msgspec.Struct):
    name: str
    price: float
    tags: list[str]
    in_stock: bool


def measure(effort: Effort) -> Line:
    rounds = [run_alone("bench.p12") for _ in range(effort.rounds)]
    got = sorted(rounds, key=lambda each: each["ratio"])[len(rounds) // 2]
    return Line(
        "P12",
        f"settle of a {got['bytes'] / 1000:.0f} KB result, against jsonschema-rs + msgspec alone",
        "≤ 10x",
        f"{got['ratio']:.2f}x",
        got["ratio"] <= 10,
        f"{us(got['settle'])} against {us(got['check'])} of processor time",
        got,
    )


@tool(executor="frontend")
def list_stock(shop: str) -> list[dict[str, object]]:
    """List what a shop has.

    Args:
        shop: Its name.

    Returns:
        One row for each article.
    """
    raise NotImplementedError


async def settle() -> dict[str, float]:
    app = make_app("memory:")
    await app.start()
    schema = _schema()
    with_schema = msgspec.structs.replace(list_stock.tool, output_schema=schema)
    calls = await Pending(app.service, with_schema).open(RESULTS)
    rows = [
        {"name": f"article {n}", "price": n / 7, "tags": ["new", "blue"], "in_stock": n % 2 == 0}
        for n in range(ARTICLES)
    ]
    bodies = [
        msgspec.json.encode({"toolCallId": call_id, "status": "success", "output": rows}) for call_id in calls
    ]
    check = _alone(bodies, schema)
    used = time.process_time()
    for body in bodies:
        receipt = await app.service.desk.settle(OWNER, decode_ack(body, Limits()).result)
        assert isinstance(receipt, Accepted), receipt
    spent = (time.process_time() - used) / len(bodies)
    await app.stop()
    return {"settle": spent, "check": check, "ratio": spent / check, "bytes": len(bodies[0])}


def _alone(bodies: list[bytes], schema: dict[str, object]) -> float:
    """Only reading and checking."""
    decode = msgspec.json.Decoder().decode
    is_valid = jsonschema_rs.validator_for(schema).is_valid
    used = time.process_time()
    for body in bodies:
        assert is_valid(decode(body)["output"])
    return (time.process_time() - used) / len(bodies)


def _schema() -> dict[str, object]:
    (row,), names = msgspec.json.schema_components([Row])
    return {"type": "array", "items": names["Row"]} | {"title": str(row.get("$ref"))}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(settle())))
