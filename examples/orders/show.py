"""Two customers and a manager use the shop's assistant; the results are checked.

Run it with `python -m examples.orders.show`.
"""

from __future__ import annotations

import asyncio
import json
import sys

import httpx2

from examples.orders import shop

ANN, BEN, MIA = ({"authorization": f"Bearer {token}"} for token in shop.PEOPLE)


async def main() -> None:
    transport = httpx2.ASGITransport(app=shop.app)
    async with (
        shop.app.router.lifespan_context(shop.app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost/assistant") as http,
    ):
        await _show_orders(http)
        await _show_refund(http)


async def _show_orders(http: httpx2.AsyncClient) -> None:
    """Both ask at the same time, and each sees their own."""
    ann, ben = await asyncio.gather(_say(http, ANN, "orders"), _say(http, BEN, "orders"))
    _print("ann's orders", ann)
    _print("ben's orders", ben)
    assert (ann, ben) == ("A-1 (kettle), A-2 (lamp)", "B-1 (chair)")


async def _show_refund(http: httpx2.AsyncClient) -> None:
    await http.post("/api/chat", json=_chat("refund A-2", "refund"), headers=ANN)
    assert shop.REFUNDS == []

    for_ann = {**MIA, "x-on-behalf-of": "ann"}
    refused = await http.get("/api/inbox", headers={**BEN, "x-on-behalf-of": "ann"})
    _print("ben looks into ann's inbox", refused.status_code)
    assert refused.status_code == 403

    [waiting] = (await http.get("/api/inbox", headers=for_ann)).json()["calls"]
    _print("mia is asked", f"{waiting['tool']} {waiting['input']}")
    answer = {"approvalId": waiting["approvalId"], "approved": True}
    assert (await http.post("/api/tools/approve", json=answer, headers=for_ann)).json() == {"ok": True}

    answer_text = await _last_text(http, ANN, "refund")
    _print("ann reads", answer_text)
    assert answer_text == "A-2 refunded for ann, approved by mia"
    assert shop.REFUNDS == ["A-2"]


async def _say(http: httpx2.AsyncClient, who: dict[str, str], text: str) -> str:
    response = await http.post("/api/chat", json=_chat(text, text), headers=who)
    frames = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    return "".join(frame["delta"] for frame in frames if frame["type"] == "text-delta")


async def _last_text(http: httpx2.AsyncClient, who: dict[str, str], chat: str) -> str:
    """The last message of the record, once the approved run is done."""
    async with asyncio.timeout(20):
        while True:
            record = (await http.get(f"/api/chat/{chat}", headers=who)).json()
            if record["state"] == "done":
                return str(record["messages"][-1]["parts"][-1]["text"])
            await asyncio.sleep(0.05)


def _chat(text: str, chat: str) -> dict[str, object]:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": chat, "messages": [message]}


def _print(what: str, value: object) -> None:
    sys.stdout.write(f"{what}: {value}\n")


if __name__ == "__main__":
    asyncio.run(main())
