"""An attendance with a desk and a store behind it, and short words for what its tests do all the time."""

from __future__ import annotations

from farhand.calls.desk import Desk
from farhand.calls.opening import Opening
from farhand.clients.attendance import Attendance
from farhand.clients.inbox import Inbox, Item, Listener
from farhand.clients.keeper import Keeper
from farhand.clients.registration import Offer, Registration
from farhand.clients.roster import ClientTools, Roster
from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.settings import Patience, Settings
from farhand.store.base import Committed, Store
from farhand.testing import FakeClock
from farhand.tools.toolbox import Toolbox

ANN = Owner("acme", "ann")
BOB = Owner("acme", "bob")
SOON = Settings(patience=Patience(client_grace=0.05, client_first=0.05))


class Office:
    def __init__(self, store: Store, clock: FakeClock, rules: ClientTools | None = None) -> None:
        self.store = store
        self.clock = clock
        self.roster = Roster(store, rules)
        self.desk = Desk(store, SOON.patience)
        self.attendance = Attendance(self.roster, self.desk, store, Toolbox(), SOON)
        self.keeper = Keeper(self.attendance, self.desk, store)

    async def register(
        self, client_id: str, *tools: str, owner: Owner = ANN, holder: str | None = None
    ) -> None:
        offers = tuple(Offer(tool, f"Can {tool}.", {}) for tool in tools)
        await self.attendance.register(owner, Registration(client_id, offers, holder=holder))

    async def ask(self, name: str, owner: Owner = ANN) -> Call:
        """Opens a call of this tool."""
        tool = self.roster.get(owner, name)
        assert tool is not None
        opening = Opening(
            call_id=self.clock.fresh("call"),
            owner=owner,
            thread_id="t1",
            tool=tool,
            input={},
            timeout_sec=100,
        )
        call = self.desk.prepare(opening)
        assert isinstance(await self.desk.open([(call, tool)]), Committed)
        return call

    def inbox(self, client_id: str = "notes", holder: str | None = None) -> Inbox:
        listener = Listener(ANN, client_id, holder or client_id)
        return Inbox(self.store, self.desk, listener, self.roster)

    async def stored(self, call: Call) -> Call:
        found = await self.store.get_call(call.owner, call.call_id)
        assert found is not None
        return found


def names(items: list[Item] | None) -> list[str]:
    return [type(item).__name__ for item in items or ()]
