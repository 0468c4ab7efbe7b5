"""Hostile JSON: whatever a body or a frame is made of, it is refused before anything is applied."""

from __future__ import annotations

import json

from tests.faces.ui_stream.websocket_client import read
from tests.requirement import requirement
from tests.security.attack import BODIES, SOCKETS, attack
from tests.security.target import PATHS_OF_SOCKETS, TYPICAL, Json, Target

pytestmark = requirement("attack:hostile-json")

TARGETS = (*(face for face in BODIES if face != "inspector"), *SOCKETS)
"""The Inspector reads no body: its one post takes any, and looks at none."""
FRAMES = {
    "ws": b'{"type":"resume","requestId":"r","id":"x"}',
    "live": b'{"type":"tool_result","toolCallId":"call_0","result":1}',
}


def with_value(valid: bytes, value: bytes) -> bytes:
    """The valid object with one field more, which nobody reads."""
    return b'{"extra":' + value + (b"," + valid[1:] if valid != b"{}" else b"}")


def valid(face: str) -> bytes:
    return FRAMES[face] if face in FRAMES else TYPICAL[face][2] or b"{}"


async def refused(target: Target, face: str, body: bytes) -> None:
    """Refused with a reason; on a socket with an error, and the socket stays."""
    if face in FRAMES:
        async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
            await socket.send(body)
            assert "error" in await read(socket)
            await socket.send(valid(face))
            assert await read(socket)
        return
    method, path, _ = TYPICAL[face]
    answer = await target.send("bob", method, path, body)
    # some routes take less than the attack is long, and say so
    assert answer.status_code == (413 if len(body) > 4096 and face == "threads" else 400), body[:60]
    assert json.loads(answer.text)
    assert "Traceback" not in answer.text


async def all_refused(target: Target, face: str, values: list[bytes]) -> None:
    for value in values:
        await refused(target, face, with_value(valid(face), value))


@attack(*TARGETS)
async def test_what_is_nested_too_deeply_is_refused(target: Target, face: str) -> None:
    deep = [b"[" * depth + b"]" * depth for depth in (65, 1_000, 100_000)]
    await all_refused(target, face, [*deep, b'{"a":' * 65 + b"1" + b"}" * 65, b"[{" * 100])


@attack(*TARGETS)
async def test_too_many_values_are_refused(target: Target, face: str) -> None:
    # what the body may hold is less on some routes: then it is the size that is refused
    crowd = b"[" + b"0," * 100_000 + b"0]"
    body = with_value(valid(face), crowd)
    if face in FRAMES:
        await refused(target, face, body)
        return
    method, path, _ = TYPICAL[face]
    assert (await target.send("bob", method, path, body)).status_code in (400, 413)


@attack(*TARGETS)
async def test_a_key_that_stands_twice_is_refused(target: Target, face: str) -> None:
    await all_refused(target, face, [b'{"a":1,"a":2}', rb'{"a":1,"\u0061":2}', b'[{"b":{"x":1,"x":1}}]'])
    own = valid(face)
    if own != b"{}":
        await refused(target, face, own[:-1] + b"," + own[1:])


@attack(*TARGETS)
async def test_numbers_that_are_none_or_too_large_are_refused(target: Target, face: str) -> None:
    digits = [b"1" * 65, b"-" + b"9" * 900]
    await all_refused(target, face, [b"NaN", b"-Infinity", b"1e999", b"01", b"0x10", b"+1", b"1.", *digits])


@attack(*TARGETS)
async def test_a_crowd_of_numbers_that_take_long_to_read_is_refused(target: Target, face: str) -> None:
    numbers = (b"1.1e+300", b"5e-324", b"1E0300")
    await all_refused(target, face, [b"[" + b",".join([each] * 25_000) + b"]" for each in numbers])


@attack("ack", "live")
async def test_the_largest_bodies_that_are_taken_leave_the_loop_to_others(target: Target, face: str) -> None:
    """What is watched during every attack is the whole of it: reading, the digest, the store, the answer."""
    largest = [
        b"[" + b",".join([b"1.2345678"] * 90_000) + b"]",
        b"[" + b",".join([b'"k%d"' % at for at in range(90_000)]) + b"]",
        b"{" + b",".join([b'"k%d":1' % at for at in range(80_000)]) + b"}",
        b"[" + b",".join([b"[" * 60 + b"]" * 60] * 1_500) + b"]",
        b'"' + b"\\u4e2d" * 160_000 + b'"',
    ]
    for value in largest:
        _, call = await target.open_call("bob")
        if face == "live":
            frame = b'{"type":"tool_result","toolCallId":"%s","result":%s}' % (call.encode(), value)
            async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
                await socket.send(frame)
                assert await read(socket)
            continue
        body = b'{"toolCallId":"%s","status":"success","output":%s}' % (call.encode(), value)
        assert (await target.send("bob", "POST", "/api/tools/ack", body)).json() == {"ok": True}


@attack(*TARGETS)
async def test_text_that_is_no_text_is_refused(target: Target, face: str) -> None:
    halves = [rb'"\ud800"', rb'"x\udc00"', rb'"\udc00\ud800"', b'"\xed\xa0\x80"']
    broken = [b'"\xff"', b'"\xc0\xaf"', b'"\x00"', b"'x'", rb'"\x41"', b'"unclosed']
    await all_refused(target, face, [*halves, *broken])


@attack(*TARGETS)
async def test_what_is_not_one_json_object_is_refused(target: Target, face: str) -> None:
    own = valid(face)
    for body in (
        b"",
        b" ",
        b"\xef\xbb\xbf" + own,
        own + own,
        own[:-1],
        b"[" + own + b"]",
        b"null",
        b"1",
        b'"x"',
    ):
        await refused(target, face, body)


@attack(*TARGETS)
async def test_fields_of_the_wrong_type_never_break_anything(target: Target, face: str) -> None:
    given = json.loads(valid(face))
    for field in given:
        wrongs: list[Json] = [
            None,
            1.5,
            True,
            "",
            [],
            {},
            [[]],
            {"a": {"b": []}},
            "x" * 10_000,
            "\u202e",
            "\x00",
        ]
        for wrong in wrongs:
            body = json.dumps({**given, field: wrong}).encode()
            if face not in FRAMES:
                method, path, _ = TYPICAL[face]
                assert (await target.send("bob", method, path, body)).status_code < 500
                continue
            async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
                await socket.send(body)
                await socket.send(b"\xff")
                assert await read(socket)


@attack(*TARGETS)
async def test_names_that_mean_something_to_other_languages_mean_nothing_here(
    target: Target, face: str
) -> None:
    own = json.loads(valid(face))
    for name in ("__proto__", "constructor", "__class__", "$where", "toString", "__init__"):
        body = json.dumps({**own, name: {"polluted": True, "isAdmin": True}}).encode()
        if face in FRAMES:
            async with target.socket(PATHS_OF_SOCKETS[face], "bob") as socket:
                await socket.send(body)
                assert "polluted" not in await read(socket)
        else:
            method, path, _ = TYPICAL[face]
            assert (await target.send("bob", method, path, body)).status_code < 500
