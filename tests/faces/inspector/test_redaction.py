"""Secrets are redacted by their names and by their form; words are not."""

from __future__ import annotations

import base64
import json
import random
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.approval import Answer, Approval
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallProgressed,
    CallRejected,
    ClientUnregistered,
    InputAdded,
    ModelDelayed,
    RunFailed,
    RunFinished,
    TextAdded,
)
from farhand.core.position import Entry, Happening
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.faces.inspector import redaction
from farhand.faces.inspector.redaction import (
    MASK,
    OVERLAP,
    SLICE_CHARS,
    is_secret_name,
    redact,
    redact_entries,
    redact_event,
    redact_text,
)
from tests.requirement import requirement

SECRET_NAMES = [
    "password", "userPassword", "PASSWORD", "passwd", "pwd", "secret", "client_secret", "apiKey", "api_key",
    "API-KEY", "x-api-key", "authorization", "Authorization", "proxy_authorization", "token", "accessToken",
    "refresh_token", "csrf-token", "private_key", "credentials", "Set-Cookie", "auth", "jwt", "otp", "pin",
]  # fmt: skip
PLAIN_NAMES = [
    "author", "tokens", "max_tokens", "token_count", "path", "url", "pinned", "spinner", "name", "keyword",
]  # fmt: skip

# nothing that looks like anything by itself
words = st.text(alphabet="abcdefgh", min_size=6, max_size=12)
leaves = st.one_of(words, st.integers(10_000_000, 99_999_999))
shapes = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)


def leaves_of(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves_of(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [value]


@requirement("inspector:masks")
@given(name=st.sampled_from(SECRET_NAMES), value=shapes, around=shapes)
def test_whatever_stands_under_a_secret_name_is_hidden_at_any_depth(
    name: str, value: object, around: object
) -> None:
    shown = redact({"outer": [{"plain": around}, {name: value}]})
    assert isinstance(shown, dict)
    hidden = shown["outer"][1][name]
    assert all(leaf == MASK for leaf in leaves_of(hidden))
    assert shown["outer"][0]["plain"] == around, "what is no secret stays as it is"


@requirement("inspector:masks")
@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_names_that_only_resemble_a_secret_are_shown(name: str) -> None:
    assert not is_secret_name(name)
    assert redact({name: "plain words"}) == {name: "plain words"}


SECRET_TEXTS = [
    ("Authorization: Bearer abc.def-123", "abc.def-123"),
    ("send bearer  s3cr3t!", "s3cr3t"),
    ("Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("https://ann:hunter2@example.org/x", "hunter2"),
    ("https://example.org/?token=abcdef&x=1", "abcdef"),
    ("export MY_API_KEY=abcdef", "abcdef"),
    ('{"password": "hunter2"}', "hunter2"),
    ('{\\"password\\": \\"hunter2\\"}', "hunter2"),
    ("client_secret='hunter2'", "hunter2"),
    ("key sk-" + "abcdefgh" * 3, "abcdefgh"),
    ("ghp_abcdefghijklmnop", "ghp_abcdefghijklmnop"),
    ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
    ("eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "eyJzdWIiOiIx"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", "MIIE"),
]
PIECES = [
    "a", "A1b", "/", " ", "-", "on ", "eyJ", "eyJ-", ".", "bearer", "bearer ", "basic ", "Zm9v1", "://", ":",
    "@", "password", "token: ", "=", "'", "sk-", "AKIA", "-----BEGIN ", "PRIVATE KEY-----", "-----END",
    "0123456789abcdef",
]  # fmt: skip


@requirement("inspector:masks")
@pytest.mark.parametrize(("text", "secret"), SECRET_TEXTS)
def test_a_secret_in_a_text_is_hidden(text: str, secret: str) -> None:
    shown = redact_text(text)
    assert secret not in shown
    assert MASK in shown


@requirement("inspector:masks")
@pytest.mark.parametrize(
    "text",
    [
        "call_0123456789abcdef0123456789abcdef",
        "123e4567-e89b-12d3-a456-426614174000",
        "/usr/share/dictionaries/english/words.txt",
        "https://example.com/2024/11/16/some-post-about-things/page2",
        "Quarterly-Report-2024-Final-Version.pdf",
        "getCurrentWeatherForLocationName",
        "a basic understanding of the token economy",
        "The passage about tokens: 4096 of them.",
        "It is sunny in Oslo: 70 degrees Fahrenheit.",
    ],
)
def test_words_paths_and_our_own_ids_are_shown(text: str) -> None:
    assert redact_text(text) == text


@requirement("inspector:masks")
def test_long_random_strings_are_hidden_wherever_they_stand() -> None:
    lots = random.Random(7)
    for _ in range(500):
        raw = lots.randbytes(32)
        url_safe = base64.urlsafe_b64encode(raw).decode()
        for secret in (raw.hex(), url_safe, url_safe.rstrip("="), base64.b64encode(raw).decode()):
            assert secret not in redact_text(f"it is {secret}, keep it")
            assert secret not in json.dumps(redact({"note": [secret]}))


@pytest.mark.parametrize(("text", "secret"), SECRET_TEXTS)
def test_a_secret_across_the_border_of_two_slices_is_hidden(text: str, secret: str) -> None:
    for before in range(SLICE_CHARS - len(text) - 2, SLICE_CHARS + 2):
        whole = f"{'words and ' * (before // 10)}{'x' * (before % 10)} {text} {'and more ' * 200}"
        shown = redact_text(whole)
        assert secret not in shown, before
        assert shown.endswith("and more ")


@given(pieces=st.lists(st.tuples(st.sampled_from(PIECES), st.integers(1, 700)), max_size=8))
def test_a_text_in_slices_is_masked_as_it_is_in_one(pieces: list[tuple[str, int]]) -> None:
    text = "".join(piece * count for piece, count in pieces)
    shown = []
    for size in (2 * OVERLAP + 1, 2**30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(redaction, "SLICE_CHARS", size)
            shown.append(redact_text(text))
    assert shown[0] == shown[1]


def test_a_secret_longer_than_a_slice_is_hidden_whole() -> None:
    lots = random.Random(8)
    for secret in (
        "eyJ" + "aB3-" * SLICE_CHARS + ".x.y",
        base64.b64encode(lots.randbytes(3 * SLICE_CHARS)).decode(),
    ):
        assert redact_text(f"it is {secret} so") == f"it is {MASK} so"
    key = f"-----BEGIN PRIVATE KEY-----{'words ' * SLICE_CHARS}-----END PRIVATE KEY-----"
    assert redact_text(f"it is {key} so") == f"it is {MASK} PRIVATE KEY----- so"


@requirement("inspector:masks")
@pytest.mark.parametrize(
    "piece",
    ["a-", "password", "A1b", "://", "bearer ", "eyJ", "eyJ-", "-----BEGIN PRIVATE KEY-----", "token:"],
)
def test_no_text_takes_long_to_look_through(piece: str) -> None:
    begun = thread_time()
    redact_text(piece * (200_000 // len(piece)))
    assert thread_time() - begun < 20


@requirement("inspector:masks")
def test_a_secret_that_was_streamed_in_pieces_is_hidden_too() -> None:
    opened = CallOpened(
        call_id="call_1",
        tool="log_in",
        tool_version="v1",
        executor=Executor.FRONTEND,
        input={"password": "hunter2"},
    )
    entries = [
        Entry(1, InputAdded("call_1", '{"pass'), 0.0),
        Entry(2, TextAdded(0, "Use sk-abcdefg"), 0.0),
        Entry(3, TextAdded(0, "hijklmnopqrstuv now."), 0.0),
        Entry(4, InputAdded("call_1", 'word": "hun'), 0.0),
        Entry(5, InputAdded("call_1", 'ter2"}'), 0.0),
        Entry(6, opened, 0.0),
        Entry(7, InputAdded("call_2", '{"token": "abc'), 0.0),
    ]
    shown = redact_entries(entries)
    assert [entry.seq for entry in shown] == [1, 2, 6, 7]
    told = repr(shown)
    assert all(secret not in told for secret in ("hun", "ter2", "abcdefg", "hijk", "abc"))


EDITED = Approval(
    approval_id="apr_1",
    digest="d",
    answer=Answer(approved=True, reason="password=hunter2", input={"password": "hunter2"}),
    asked_input={"password": "hunter2"},
)


@requirement("inspector:masks")
@pytest.mark.parametrize(
    "event",
    [
        RunFailed("odd", "password=hunter2"),
        RunFinished(RunState.STOPPED, "password=hunter2"),
        ModelDelayed("password=hunter2"),
        ClientUnregistered("notes", (), "password=hunter2"),
        CallProgressed("call_1", "read", "password=hunter2"),
        CallRejected(call_id="call_1", tool="x", input="password=hunter2", error="password=hunter2"),
        ApprovalAnswered(
            call_id="call_1",
            tool="x",
            executor=Executor.SERVER,
            approval=EDITED,
            input=EDITED.asked_input or {},
        ),
    ],
)
def test_the_words_of_every_event_are_looked_through(event: Happening) -> None:
    assert "hunter2" not in repr(redact_event(event))
