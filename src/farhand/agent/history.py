"""What the model is told of the past: the thread's messages, each call with its outcome. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from farhand.core.call import Call
from farhand.core.event import Entry, ReasoningAdded, StepDiscarded, StepFinished, StepStarted, TextAdded
from farhand.core.outcome import Cancelled, Failure, TimedOut, canonical
from farhand.core.run import Run
from farhand.core.thread import Asked, AssistantMessage, Message, Reasoning, Resolved, ResultsMessage, Text


def open_step(messages: Sequence[Message], run_id: str) -> AssistantMessage | None:
    """The run's last step, if its calls have no results in the thread yet."""
    last = messages[-1] if messages else None
    if isinstance(last, AssistantMessage) and last.run_id == run_id and last.asked:
        return last
    return None


def results_of(
    step: AssistantMessage, calls: Iterable[Call], given_up: str = "the run ended"
) -> ResultsMessage:
    """The outcomes in the order of the calls; what is still open is given up, in these words."""
    known = {call.call_id: call for call in calls}
    asked = [part for part in step.parts if isinstance(part, Asked)]
    results = tuple([_resolved(each, known.get(each.call_id), given_up) for each in asked])
    return ResultsMessage(step.run_id, step.step, results)


def cut_step(entries: Sequence[Entry], run: Run) -> AssistantMessage | None:
    """What the model had said of a step that was stopped in mid-word; its unfinished calls never existed."""
    parts = tuple([part for part in _unfinished_parts(entries) if isinstance(part, Text)])
    return AssistantMessage(run.run_id, run.step + 1, parts) if parts else None


def unfinished_step(entries: Sequence[Entry], run: Run) -> AssistantMessage | None:
    """What the model has written so far of the step that is under way, reasoning included."""
    parts = tuple(_unfinished_parts(entries))
    return AssistantMessage(run.run_id, run.step + 1, parts) if parts else None


def _unfinished_parts(entries: Sequence[Entry]) -> list[Text | Reasoning]:
    texts: dict[tuple[type[Text | Reasoning], int], list[str]] = {}
    for entry in entries:
        match entry.event:
            case StepStarted() | StepFinished() | StepDiscarded():
                texts = {}
            case TextAdded(part=part, text=text):
                texts.setdefault((Text, part), []).append(text)
            case ReasoningAdded(part=part, text=text):
                texts.setdefault((Reasoning, part), []).append(text)
            case _:
                pass
    return [kind("".join(pieces)) for (kind, _), pieces in texts.items()]


def stuck_on(messages: Sequence[Message], run_id: str, times: int) -> str | None:
    """The tool whose same call with the same input failed in each of the last `times` steps of this run."""
    steps = [
        message for message in messages if isinstance(message, ResultsMessage) and message.run_id == run_id
    ]
    if len(steps) < times:
        return None
    in_all = set.intersection(*(_failures(step) for step in steps[-times:]))
    return min(in_all)[0] if in_all else None


def _failures(step: ResultsMessage) -> set[tuple[str, bytes]]:
    return {
        (resolved.tool, canonical(resolved.input))
        for resolved in step.results
        if isinstance(resolved.outcome, Failure | TimedOut)
    }


def _resolved(asked: Asked, call: Call | None, given_up: str) -> Resolved:
    outcome = call.outcome if call is not None else None
    # what ran is what the model must hear of: a person may have edited the input
    ran = call.input if call is not None and call.approval is not None else asked.input
    return Resolved(
        call_id=asked.call_id,
        tool=asked.tool,
        input=ran,
        outcome=outcome or Cancelled(given_up),
        model_call_id=asked.model_call_id,
        untrusted=call is not None and call.untrusted,
    )
