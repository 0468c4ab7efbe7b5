"""The one wait: sleep until calls are settled or the time is up.

Subscribe first, then read the record; every sleep ends in another look, so a lost notification costs at
most one re-check. No task and no timer per waiting call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.errors import ShuttingDown
from farhand.store.base import Store
from farhand.store.hub import Watch, freed

JUST_STORED_SEC = 0.5
"""For so long nobody doubts that what was stored a moment ago is how things are."""


async def settled(
    store: Store, run: Run, *, patient: Callable[[], float], calls: dict[str, Call] | None = None
) -> Run | None:
    """The run once nothing in it waits for a person or a far hand; None when patience is at an end.

    `patient` says how many seconds to sleep at most before it is asked again; none means: give up. With
    `calls`, run and calls are as the caller has just stored them: the record is looked at only if nothing is
    heard for a moment, and what is heard of these calls is kept in there.
    """
    with store.hub.watch(freed(run.run_id), *(calls or ())) as watch:
        now: Run | None = run
        recheck = JUST_STORED_SEC
        if calls is None:
            now, recheck = await store.get_run(run.owner, run.run_id), store.hub.recheck
        while True:
            if now is None or now.blockers == 0 or now.fence != run.fence:
                return now
            seconds = patient()
            if seconds <= 0:
                return None
            recheck = min(recheck, store.hub.recheck)
            await watch.wait(min(seconds, recheck))
            if seconds < recheck and not watch.news and not watch.lost:
                # patience alone is asked again: the record was looked at a moment ago
                recheck -= seconds
                continue
            recheck = store.hub.recheck
            now = _heard(watch, now, {} if calls is None else calls)
            if now is None:
                now = await store.get_run(run.owner, run.run_id)


def _heard(watch: Watch, run: Run, calls: dict[str, Call]) -> Run | None:
    """The run by what was told of it and its calls; None if only the record knows."""
    news = list(watch.news)
    watch.news.clear()
    if watch.lost or not news:
        watch.lost = False
        return None
    for item in news:
        if isinstance(item, Call):
            calls[item.call_id] = item
        elif isinstance(item, Run) and item.last_seq >= run.last_seq:
            run = item
        else:
            # one that is older was read before what this side has written since
            return None
    return run


async def answered(store: Store, run: Run, calls: Sequence[Call], *, patient: Callable[[], float]) -> bool:
    """True once each of these calls of the run has its outcome, whatever else is open in it; False when
    patience is at an end."""
    with store.hub.watch(freed(run.run_id), *(call.call_id for call in calls)) as watch:
        while True:
            now = [await store.get_call(run.owner, call.call_id) for call in calls]
            if not any(call is not None and call.phase is not Phase.SETTLED for call in now):
                return True
            seconds = patient()
            if seconds <= 0:
                return False
            await watch.wait(min(seconds, store.hub.recheck))
            watch.news.clear()


async def unblocked(store: Store, owner: Owner, call_id: str) -> Call | None:
    """One call that has no run, once no person and no far hand is waited for; None if it is gone.

    When the process is about to stop, the waiting ends and the call does not.
    """
    with store.hub.watch(call_id) as watch:
        while True:
            call = await store.get_call(owner, call_id)
            if call is None or not call.blocks:
                return call
            if store.hub.closed:
                raise ShuttingDown("The server is about to stop.", hint="The call goes on; ask again for it.")
            await watch.wait(store.hub.recheck)
            watch.news.clear()
