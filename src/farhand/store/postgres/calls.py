"""What is written to calls: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from farhand.core.call import Call
from farhand.store.base import InsertCall, SwapCall, Why
from farhand.store.postgres.draft import CallRow, Draft
from farhand.store.postgres.rows import Unknown, encode, encode_with
from farhand.store.postgres.runs import block_run
from farhand.store.postgres.told import Told
from farhand.store.rules import why_not_swap


def insert_call(draft: Draft, told: Told, write: InsertCall) -> Why | None:
    call = write.call
    if draft.calls.get(call.call_id) is not None:
        return "exists"
    run = None if call.run_id is None else draft.runs.get(call.run_id)
    if run is None and call.run_id is not None:
        return "missing"
    if not _is_first_request(draft, call):
        return "exists"
    draft.calls.put(call.call_id, _call_row(call, None if run is None else run.run_no, {}))
    if write.tool is not None and draft.tools.get(call.tool_version) is None:
        draft.tools.put(call.tool_version, encode(write.tool))
    block_run(draft, told, run, int(call.blocks))
    if call.client_id is not None:
        told.calls.append(call)
    return None


def swap_call(draft: Draft, told: Told, write: SwapCall) -> Why | None:
    before, after = write.before, write.after
    stored = draft.calls.get(before.call_id)
    if stored is None:
        return "missing"
    why = why_not_swap(write, version=stored.version, deadline=stored.deadline, now=told.at)
    if why is not None:
        return why
    run = None if before.run_id is None else draft.runs.get(before.run_id)
    draft.calls.put(before.call_id, _call_row(after, stored.run_no, stored.unknown))
    told.calls.append(after)
    block_run(draft, told, run, int(after.blocks) - int(before.blocks))
    return None


def _is_first_request(draft: Draft, call: Call) -> bool:
    request_id = None if call.request is None else call.request.request_id
    if request_id is None:
        return True
    key = (call.owner, request_id)
    if draft.requests.get(key) is not None:
        return False
    draft.requests.put(key, call.call_id)
    return True


def _call_row(call: Call, run_no: int | None, unknown: Unknown) -> CallRow:
    return CallRow(run_no, call.version, call.deadline, unknown, call, encode_with(unknown, call))
