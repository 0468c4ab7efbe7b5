"""A far hand that answers by plain POST, and a page that holds its stream meanwhile."""

from __future__ import annotations

from typing import Any

import httpx2

from farhand.models.scripted import Ask
from tests.faces.ui_stream.page import Live, Page

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any
Answer = tuple[int, Json]

OPEN = Ask("open_url", {"url": "u"})
PHOTO = Ask("take_photo", {"camera": "front"})
DELETE = Ask("delete_file", {"path": "a"})
OK: Answer = (200, {"ok": True})
IGNORED: Answer = (200, {"ok": True, "ignored": True})
UNKNOWN: Answer = (404, {"ok": False, "reason": "unknown"})


class Hand:
    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def ack(self, call_id: str, status: str = "success", **more: object) -> Answer:
        return await self.post("/api/tools/ack", {"toolCallId": call_id, "status": status, **more})

    async def take(self, call_id: str, client_id: str = "tab-1") -> Answer:
        return await self.post("/api/tools/take", {"toolCallId": call_id, "clientId": client_id})

    async def approve(self, approval_id: str, *, approved: object = True, **more: object) -> Answer:
        body = {"approvalId": approval_id, "approved": approved, **more}
        return await self.post("/api/tools/approve", body)

    async def post(self, path: str, body: object) -> Answer:
        response = await self._http.post(path, json=body)
        return response.status_code, response.json()


async def opened(live: Live) -> str:
    """The call that a held response has just handed out."""
    return str((await live.until("tool-input-available"))["toolCallId"])


async def asked(live: Live) -> tuple[str, str]:
    """The call and the approval that a held response has just asked for."""
    request = await live.until("tool-approval-request")
    return str(request["toolCallId"]), str(request["approvalId"])


def held(http: httpx2.AsyncClient) -> Page:
    return Page(http, wait="hold")
