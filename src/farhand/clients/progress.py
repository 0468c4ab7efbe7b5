"""What a client says while it works on a call: that it still does, and how far it is.

Owns no state: the take is the desk's, the sentence goes to the owner's feed and nowhere else.
"""

from __future__ import annotations

from msgspec import Struct

from farhand.calls.desk import Desk
from farhand.clients.inbox import Listener
from farhand.core.event import CallProgressed
from farhand.core.result import Accepted, Receipt
from farhand.store.base import Store, Tell
from farhand.store.soon import soon


class Report(Struct, frozen=True):
    """`text` may be empty. One that is no progress only says that the call is still worked on."""

    listener: Listener
    call_id: str
    text: str = ""
    is_progress: bool = True


class Progress:
    def __init__(self, desk: Desk, store: Store) -> None:
        self._desk = desk
        self._store = store

    async def note(self, report: Report) -> Receipt:
        """Renews the take, and with progress the deadline; who has no take is told why and tells nobody
        anything."""
        owner, holder = report.listener.owner, report.listener.holder
        act = self._desk.renew if report.is_progress else self._desk.take
        receipt = await act(owner, report.call_id, holder)
        if report.text and isinstance(receipt, Accepted):
            await self._tell(report)
        return receipt

    async def _tell(self, report: Report) -> None:
        call = await self._store.get_call(report.listener.owner, report.call_id)
        if call is None:
            return
        request_id = None if call.request is None else call.request.request_id
        said = CallProgressed(call.call_id, call.tool, report.text, request_id)
        told = self._store.commit(Tell(call.owner, (said,), thread_id=call.thread_id))
        await soon(self._store, told)
