"""A value is checked against a schema, quickly, and nothing is ever fetched for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from farhand.core.tool import Schema
from farhand.errors import BadTool
from farhand.tools.check import SCHEMAS_KEPT, SMALL, compile_schema, mismatch
from tests.requirement import requirement

WEATHER: Schema = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "minLength": 1},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "unit": {"enum": ["C", "F"]},
        "stops": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
    },
    "required": ["location"],
    "additionalProperties": False,
}


@requirement("tools:bad-input")
@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"location": "Bonn"}, None),
        ({"location": "Bonn", "days": None, "unit": "F"}, None),
        ({}, "`location` is missing"),
        ({"location": 3}, "`location` must be a string, got an integer"),
        ({"location": "Bonn", "days": "3"}, "`days` must be an integer or null, got a string"),
        ({"location": "Bonn", "when": 1}, "`when` is not expected"),
        ([], "the value must be an object, got an array"),
        (None, "the value must be an object, got null"),
    ],
)
def test_a_mismatch_names_the_parameter(value: object, sentence: str | None) -> None:
    assert mismatch(WEATHER, value) == sentence


@pytest.mark.parametrize("value", [b"x", {"location": {1: 2}}, {"\ud800": 1}, object()])
def test_a_value_that_is_not_json_is_a_mismatch(value: object) -> None:
    assert mismatch(WEATHER, value) == "the value is not JSON or is nested too deeply"


def test_a_value_that_contains_itself_is_a_mismatch() -> None:
    loop: dict[str, object] = {}
    loop["location"] = loop
    # versions of the validator differ in whether they notice the type or the depth first
    assert mismatch(WEATHER, loop) in {
        "`location` does not fit its schema",
        "the value is not JSON or is nested too deeply",
    }
    assert mismatch({"const": 1}, loop) == "the value is not JSON or is nested too deeply"


def test_a_large_value_is_told_the_parameter_at_fault_without_a_list_of_every_mismatch() -> None:
    stops = {"location": "Bonn", "days": 1, "stops": ["a"] * (SMALL + 1)}
    assert mismatch(WEATHER, stops) == "`stops` does not fit its schema"
    assert mismatch(WEATHER, {"stops": [1] * (SMALL + 1)}) == "the value does not fit its schema"
    assert mismatch(WEATHER, [1] * (SMALL + 1)) == "the value does not fit its schema"


def test_a_large_value_under_a_schema_without_choices_is_told_the_exact_place() -> None:
    numbers: Schema = {"type": "array", "items": {"type": "integer"}}
    assert mismatch(numbers, [1] * 50_000 + ["a"]) == "`[50000]` must be an integer, got a string"


def test_a_schema_is_compiled_once_per_content_and_not_kept_forever() -> None:
    first = compile_schema({"type": "object", "title": "once"})
    assert compile_schema({"title": "once", "type": "object"}) is first
    for number in range(SCHEMAS_KEPT):
        compile_schema({"type": "object", "title": f"other {number}"})
    assert compile_schema({"type": "object", "title": "once"}) is not first


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"$ref": "#/$defs/missing"},
        {"type": "string", "pattern": "("},
        {"type": "string", "pattern": "(?=look-around)"},
        {"$ref": "file:///etc/hostname"},
    ],
)
def test_what_is_no_usable_schema_is_refused_in_one_sentence(schema: Schema) -> None:
    with pytest.raises(BadTool, match=r"A schema is not valid: .*local references") as refused:
        compile_schema(schema)
    assert "\n" not in str(refused.value)


@requirement("tools:gate")
def test_a_pattern_that_would_backtrack_for_ages_is_matched_in_linear_time() -> None:
    greedy: Schema = {"type": "string", "pattern": "^(a+)+$"}
    # with backtracking this would not end within the life of the machine
    assert mismatch(greedy, "a" * 5_000 + "b") == "the value must match the pattern ^(a+)+$"


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A real server that would serve a schema, and the paths it was asked for."""
    paths: list[str] = []

    class Serves(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Serves)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    thread.join()
    server.server_close()


@requirement("tools:gate")
def test_a_remote_reference_is_refused_and_never_fetched(asked: tuple[str, list[str]]) -> None:
    address, paths = asked
    with pytest.raises(BadTool, match="is not valid"):
        compile_schema({"$ref": f"{address}/schema.json"})
    assert paths == []
