"""A call as a command: what would bring its answer once more. Pure; the token is named, never written."""

from __future__ import annotations

import shlex

from farhand.core.call import Call, Phase
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.tool import Executor
from farhand.wire.json_out import encode


def curl_of(call: Call, outcome: Outcome | None, address: str) -> str:
    """`outcome` is the call's, masked."""
    if call.approval is not None and (call.phase is Phase.ASKING or isinstance(outcome, Denied)):
        return _post(f"{address}/api/tools/approve", _approval(call.approval.approval_id, outcome))
    if call.executor is Executor.SERVER:
        # nobody else can answer it: the record is what there is to see
        return f"curl {_quoted(f'{address}/api/inspect/calls/{call.call_id}')} {_SIGN_IN}"
    return _post(f"{address}/api/tools/ack", _ack(call.call_id, outcome))


_SIGN_IN = '-H "Authorization: Bearer $FARHAND_TOKEN"'


def _approval(approval_id: str, outcome: Outcome | None) -> dict[str, object]:
    said: dict[str, object] = {"approvalId": approval_id, "approved": not isinstance(outcome, Denied)}
    return {**said, "reason": outcome.reason} if isinstance(outcome, Denied) and outcome.reason else said


def _ack(call_id: str, outcome: Outcome | None) -> dict[str, object]:
    ack: dict[str, object] = {"toolCallId": call_id, "status": "success"}
    match outcome:
        case Success(output=output):
            return {**ack, "output": output}
        case Failure(error=error):
            return {**ack, "status": "failed", "errorText": error}
        case None | TimedOut() | Cancelled() | Denied():
            # nobody has answered: what the answer would be is for the reader to say
            return {**ack, "output": None}


def _post(url: str, body: dict[str, object]) -> str:
    return (
        f"curl {_quoted(url)} {_SIGN_IN} \\\n  -H 'Content-Type: application/json' \\\n"
        f"  -d {_quoted(encode(body).decode())}"
    )


def _quoted(text: str) -> str:
    return shlex.quote(text)
