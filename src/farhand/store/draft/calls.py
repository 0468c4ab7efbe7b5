"""What is written to calls: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from farhand.core.call import Call, Phase
from farhand.store.base import InsertCall, SwapCall, Why
from farhand.store.draft.draft import CallRow, Draft
from farhand.store.draft.records import Unknown, encode, encode_with
from farhand.store.draft.runs import block_run
from farhand.store.rules import why_not_swap
from farhand.store.told import Told


def insert_call(draft: Draft, told: Told, write: InsertCall) -> Why | None:
    call = write.call
    if (draft.calls[call.call_id] if draft.careful else draft.calls.get(call.call_id)) is not None:
        return "exists"
    run = None if call.run_id is None else draft.runs[call.run_id]
    if run is None and call.run_id is not None:
        return "missing"
    if call.request is not None and not _is_first_request(draft, call):
        return "exists"
    row = _call_row(call, next(draft.call_numbers), None if run is None else run.run_no, {})
    draft.calls.put(call.call_id, row)
    draft.opened.append((row, call, encode(call)))
    if write.tool is not None and draft.tools[call.tool_version] is None:
        draft.tools.put(call.tool_version, encode(write.tool))
    if run is not None:
        block_run(draft, told, run, int(call.blocks))
    if call.client_id is not None:
        told.calls.append(call)
    return None


def swap_call(draft: Draft, told: Told, write: SwapCall) -> Why | None:
    before, after = write.before, write.after
    stored = draft.calls[before.call_id]
    if stored is None:
        return "missing"
    why = why_not_swap(write, version=stored.version, deadline=stored.deadline, now=told.at)
    if why is not None:
        return why
    run = None if before.run_id is None else draft.runs[before.run_id]
    row = _call_row(after, stored.call_no, stored.run_no, stored.unknown)
    draft.calls.put(before.call_id, row)
    draft.moved.append((stored, row, after, encode_with(row.unknown, after)))
    told.calls.append(after)
    if run is not None:
        block_run(draft, told, run, int(after.blocks) - int(before.blocks))
    return None


def _is_first_request(draft: Draft, call: Call) -> bool:
    request_id = None if call.request is None else call.request.request_id
    if request_id is None:
        return True
    key = (call.owner, request_id)
    if draft.requests[key] is not None:
        return False
    draft.requests.put(key, call.call_id)
    return True


def _call_row(call: Call, call_no: int, run_no: int | None, unknown: Unknown) -> CallRow:
    is_open = call.phase is not Phase.SETTLED
    return CallRow(call_no, run_no, call.version, call.deadline, is_open, unknown)
