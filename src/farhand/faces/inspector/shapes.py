"""The words of the inspector's own wire. A moment is in seconds since the run began, an `…At` a time."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class Trouble(Struct, rename="camel"):
    """The last call of a run that did not end well."""

    tool: str
    outcome: str
    told: str


class RunRow(Struct, rename="camel"):
    """`state` is running, waiting, parked, done, stopped or failed; `waiting` counts answers that are due."""

    run_id: str
    thread_id: str
    title: str
    state: str
    started_at: str
    ended_at: str | None
    seconds: float
    steps: int
    calls: int
    waiting: int
    error: str | None
    trouble: Trouble | UnsetType = UNSET


class RunPage(Struct):
    runs: list[RunRow]
    next: str | UnsetType = UNSET


class SegmentShape(Struct, omit_defaults=True):
    kind: str
    start: float
    end: float | UnsetType = UNSET
    lost: bool = False


class RowShape(Struct, rename="camel", omit_defaults=True):
    """A model step, or one of its calls. Without an `end` it is still going."""

    step: int
    start: float
    segments: list[SegmentShape]
    end: float | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    executor: str | UnsetType = UNSET
    card: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET


class FiguresShape(Struct):
    """Milliseconds; the five add up to the whole."""

    whole: int
    model: int
    person: int
    client: int
    way: int
    server: int


class RunShape(Struct, rename="camel"):
    """`now` is the server's, on the run's own scale. `kept`: whether its events are still there."""

    run: RunRow
    figures: FiguresShape
    rows: list[RowShape]
    now: float
    kept: bool
    parks: int
    model: str
    store: str


class EventShape(Struct, rename="camel", omit_defaults=True):
    """One thing that happened; `told` in a few words, `data` as it was. `at` or, in a feed, `happenedAt`."""

    seq: int
    type: str
    told: str
    data: dict[str, object]
    at: float | UnsetType = UNSET
    happened_at: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    thread_id: str | UnsetType = UNSET


class EventPage(Struct):
    """`total` counts what there is; `events` are the last of it."""

    events: list[EventShape]
    total: int


class SentenceShape(Struct, omit_defaults=True):
    title: str
    detail: str
    tone: str
    at: float | UnsetType = UNSET


class FrameShape(Struct):
    seq: int | None
    text: str


class WireShape(Struct):
    """How one face tells the call: what is asked for, the headers of the answer, its frames."""

    name: str
    request: str
    headers: list[tuple[str, str]]
    frames: list[FrameShape]


class CallShape(Struct, rename="camel"):
    """`outcome` is null while the call is open; `again` says whether its answer can be sent once more."""

    call_id: str
    tool: str
    executor: str
    phase: str
    thread_id: str
    run_id: str | None
    step: int
    client_id: str | None
    holder: str | None
    card: str | None
    deadline: str | None
    approval_id: str | None
    input: dict[str, object]
    asked_input: dict[str, object] | None
    outcome: dict[str, object] | None
    digest: str | None
    life: list[SentenceShape]
    wires: list[WireShape]
    curl: str
    again: bool


class ReceiptShape(Struct, omit_defaults=True):
    """What the desk said to the same answer, sent once more."""

    receipt: str
    told: str


class TestShape(Struct):
    name: str
    text: str


class ClientShape(Struct, rename="camel"):
    """`here`: it listens now. `away` counts the seconds since it was last heard of, if this process knows."""

    client_id: str
    tools: list[str]
    here: bool
    away: float | None
    grace: float
    registered_at: str
    open_calls: int


class ToolShape(Struct, rename="camel"):
    name: str
    description: str
    executor: str
    client_id: str | None
    asks: bool
    card: str | None
    timeout: float | None
    version: str
    input_schema: dict[str, object]
    output_schema: dict[str, object] | None


class WaitingShape(Struct, rename="camel"):
    """One open question."""

    call_id: str
    thread_id: str
    run_id: str | None
    title: str
    tool: str
    executor: str
    phase: str
    input: dict[str, object]
    opened_at: str
    deadline: str | None
    approval_id: str | None
    holder: str | None


class ServerShape(Struct, rename="camel"):
    """Who looks, and at what."""

    tenant: str
    subject: str
    model: str
    store: str
    version: str
    wires: list[str]
