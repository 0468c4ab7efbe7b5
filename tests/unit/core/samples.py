"""One call, one tool and one time for the tests of core; each test changes what it is about."""

from __future__ import annotations

from farhand.core.approval import Answer, Approval
from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.tool import Executor, digest_of_approval

NOW = 1_000.0
OWNER = Owner("acme", "ann")
YES = Answer(approved=True)
NO = Answer(approved=False, reason="too dear")


def a_call(
    phase: Phase = Phase.READY, *, executor: Executor = Executor.FRONTEND, approval: Approval | None = None
) -> Call:
    return Call(
        call_id="call_1",
        owner=OWNER,
        thread_id="t",
        run_id="run_1",
        tool="open_url",
        tool_version="v1",
        executor=executor,
        input={"url": "https://example.org"},
        opened_at=NOW,
        phase=phase,
        deadline=NOW + 60,
        approval=approval,
    )


def an_asking_call() -> Call:
    call = a_call(Phase.ASKING)
    approval = Approval(approval_id="apr_1", digest=digest_of_approval(call.tool_version, call.input))
    return a_call(Phase.ASKING, approval=approval)
