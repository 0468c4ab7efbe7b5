"""The structs of the Inspector. Moments are seconds since the run began, fields `…At` are times."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class InspectedTrouble(Struct, rename="camel"):
    """The last call of a run that did not end well."""

    tool: str
    outcome: str
    told: str


class InspectedRunRow(Struct, rename="camel"):
    """`state` is running, waiting, parked, done, stopped or failed; `waiting` counts open questions."""

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
    trouble: InspectedTrouble | UnsetType = UNSET


class InspectedRuns(Struct):
    runs: list[InspectedRunRow]
    next: str | UnsetType = UNSET


class InspectedSegment(Struct, omit_defaults=True):
    """Without an `end` it is still in progress. `lost`: the take before it was released."""

    kind: str
    start: float
    end: float | UnsetType = UNSET
    lost: bool = False


class InspectedRow(Struct, rename="camel", omit_defaults=True):
    """A model step, or one of its calls. Without an `end` it is still in progress."""

    step: int
    start: float
    segments: list[InspectedSegment]
    end: float | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    executor: str | UnsetType = UNSET
    card: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    """For a call: what people see instead of the tool's name."""
    input_tokens: int | UnsetType = UNSET
    """For a step: the provider's counts."""
    output_tokens: int | UnsetType = UNSET
    cost: float | UnsetType = UNSET
    """In dollars, if the model has a price."""


class InspectedMark(Struct, rename="camel", omit_defaults=True):
    """What happened outside the segments: `lost` and `resumed` (the connection of the last reader), `paused`
    and `continued` (the run was saved while waiting), `repeat` and `conflict` (an answer without effect)."""

    kind: str
    at: float
    call_id: str | UnsetType = UNSET


class InspectedUsage(Struct, rename="camel"):
    """All steps together. `cost` is in dollars; null if the model has no price."""

    input_tokens: int
    output_tokens: int
    cost: float | None


class InspectedFigures(Struct):
    """Milliseconds; the five add up to the whole, since each moment counts once."""

    whole: int
    model: int
    person: int
    client: int
    way: int
    server: int


class InspectedRun(Struct, rename="camel"):
    """`now` is the server's time in seconds since the run began. `kept`: whether its events still exist."""

    run: InspectedRunRow
    figures: InspectedFigures
    rows: list[InspectedRow]
    now: float
    kept: bool
    parks: int
    model: str
    store: str
    marks: list[InspectedMark] = []
    reconnects: int = 0
    repeats: int = 0
    usage: InspectedUsage | None = None
    """Null if the provider counted nothing."""
    prompt: str | None = None
    """The message that it answers, if a new run can begin with it."""


class InspectedEvent(Struct, rename="camel", omit_defaults=True):
    """One event: `told` as a line of text, `data` as JSON; with `at` or, in a feed, `happenedAt`."""

    seq: int
    type: str
    told: str
    data: dict[str, object]
    at: float | UnsetType = UNSET
    happened_at: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    thread_id: str | UnsetType = UNSET


class InspectedEvents(Struct):
    """`total` counts all events; `events` are the last ones."""

    events: list[InspectedEvent]
    total: int


class InspectedSentence(Struct, omit_defaults=True):
    """`tone` is good, care, bad or open. Without `at` it has not happened yet."""

    title: str
    detail: str
    tone: str
    at: float | UnsetType = UNSET


class InspectedFrame(Struct):
    seq: int | None
    text: str


class InspectedWire(Struct):
    """How one face encodes the call: the request, the headers of the response, its frames."""

    name: str
    request: str
    headers: list[tuple[str, str]]
    frames: list[InspectedFrame]


class InspectedCall(Struct, rename="camel"):
    """`outcome` is null while the call is open; `again` says whether its answer can be sent again."""

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
    life: list[InspectedSentence]
    wires: list[InspectedWire]
    curl: str
    again: bool


class InspectedReceipt(Struct, omit_defaults=True):
    """The receipt for the same answer, sent again."""

    receipt: str
    told: str


class RerunBody(Struct, rename="camel", forbid_unknown_fields=True):
    """From a step, or from a call of it. `input` replaces that of the call, `text` the user's message."""

    step: int
    call_id: str | None = None
    input: dict[str, object] | None = None
    text: str | None = None
    repeat: bool = False
    """True: server tools that finished may run again."""


class InspectedRerun(Struct, rename="camel", omit_defaults=True):
    """The new run; or `repeats`, tools that ran on the server and might run again: nothing was started,
    send `repeat: true` to start anyway."""

    thread_id: str | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    repeats: list[str] = []


class InspectedTest(Struct):
    name: str
    text: str


class InspectedClient(Struct, rename="camel"):
    """`here`: it has a stream now. `away` are the seconds since its last stream, if this process knows."""

    client_id: str
    tools: list[str]
    here: bool
    away: float | None
    grace: float
    registered_at: str
    open_calls: int


class InspectedTool(Struct, rename="camel"):
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


class InspectedWaiting(Struct, rename="camel"):
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


class InspectedServer(Struct, rename="camel"):
    """Who makes the request, and what the server is."""

    tenant: str
    subject: str
    model: str
    store: str
    version: str
    wires: list[str]


class InspectedInbox(Struct):
    calls: list[InspectedWaiting]


class InspectedClients(Struct):
    clients: list[InspectedClient]


class InspectedTools(Struct):
    tools: list[InspectedTool]
