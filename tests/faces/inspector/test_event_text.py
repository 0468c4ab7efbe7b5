"""Events as one line: the person who allowed or denied a call is named, if the sign-in has a name."""

from __future__ import annotations

import pytest

from farhand.core.approval import Answer, Approval
from farhand.core.event import ApprovalAnswered
from farhand.core.tool import Executor
from farhand.faces.inspector.event_text import event_line


@pytest.mark.parametrize(
    ("answer", "by", "line"),
    [
        (Answer(approved=True), {"name": "Ada"}, "send, allowed by Ada"),
        (
            Answer(approved=False, reason="Wrong"),
            {"email": "j@x.example"},
            "send, denied by j@x.example: Wrong",
        ),
        (Answer(approved=True), {}, "send, allowed"),
    ],
)
def test_an_answer_to_an_approval_names_the_person(answer: Answer, by: dict[str, object], line: str) -> None:
    approval = Approval(approval_id="apr_1", digest="d", answer=answer, by=by)
    event = ApprovalAnswered(
        call_id="call_1", tool="send", executor=Executor.SERVER, approval=approval, input={}
    )
    assert event_line(event, {}, "t1") == line
