"""One guarded reader, one schema check, one framing, one escape: no other code handles outside input."""

from __future__ import annotations

import ast

import pytest

from tests.security.syntax_scan import modules, names_in, readers_in, texts_in

MAY_READ = {
    "wire/json_reader.py": "the guarded reader itself",
    "wire/address.py": "the query of an address: bounded, strict, each parameter once",
    "wire/json_writer.py": "what this process has just written, when half a character stands in it",
    "auth/token_file.py": "a file of whoever runs the server",
    "auth/web_token.py": "tokens, by the library made for them; every fault of it is a no",
    "server/settings.py": "the settings file and the environment of whoever runs the server",
    "tools/check.py": "schemas that passed the gate, from their canonical form",
    "tools/schema_admission.py": "the gate itself, from the canonical form of what the guarded reader read",
    "tools/declared.py": "what the program that uses farhand declares",
    "models/scripted/yaml_reader.py": "a script of the operator",
    "models/stream_guard.py": "what the provider sends, checked against its shape",
    "models/anthropic/stream.py": "what the provider sends, checked against its shape",
    "models/openai/chat.py": "what the provider sends, checked against its shape",
    "models/openai/responses.py": "what the provider sends, checked against its shape",
    "models/prompt_encoding.py": "what this process has just written",
    "faces/inspector/redaction.py": "what the store holds, to hide secrets in it; a fault hides all",
    "store/records.py": "the store's own rows",
    "eventlog/codec.py": "the rows of the store's own log",
    "store/postgres/connection.py": "an address of whoever runs the server",
    "store/postgres/notify.py": "hints of the store, which are only hints",
    "cli/remote/http.py": "the command line, and what the user's own server answers",
    "client/client.py": "what the server answers that a program chose",
    "client/connection.py": "what the server answers that a program chose",
}
"""Every module that reads structured text, and whose text that is. The first two alone read requests."""


def test_only_the_listed_modules_read_structured_text() -> None:
    found = {name: readers_in(tree) for name, tree in modules()}
    assert {name for name, readers in found.items() if readers} <= MAY_READ.keys(), found


def test_no_face_and_nothing_of_the_server_parses_a_body_itself() -> None:
    for name, tree in modules():
        if name.startswith(("faces/", "server/", "agent/", "calls/", "clients/", "core/")):
            extra = (
                readers_in(tree) - {"tomllib.loads", "json.loads"} if name in MAY_READ else readers_in(tree)
            )
            assert not extra or name == "faces/inspector/redaction.py", f"{name}: {extra}"


def test_every_face_that_takes_a_body_decodes_it_with_the_guarded_reader() -> None:
    guard = {
        "farhand.wire.json_reader.read_as",
        "farhand.wire.json_reader.read_json",
        "farhand.wire.json_reader.OneOf",
    }
    for name, tree in modules():
        if name.startswith("faces/") and name.endswith("/routes.py") and ".json()" in ast.unparse(tree):
            face = name.split("/")[1]
            decoding = dict(modules())[f"faces/{face}/decode.py"]
            # the inspector's one post takes a body so that a form can't send it, and looks at none
            assert names_in(decoding) & guard or face == "inspector", name


def test_schemas_from_outside_come_in_through_the_gate_alone() -> None:
    """Whoever makes a checker of a schema is the gate, the checker itself, or declares tools here."""
    validators = {name for name, tree in modules() if any("jsonschema_rs" in each for each in names_in(tree))}
    assert validators == {"tools/check.py", "tools/schema_admission.py"}
    gated = {
        name for name, tree in modules() if "farhand.tools.schema_admission.admit_schema" in names_in(tree)
    }
    assert gated == {"agent/offered_tools.py", "clients/registration.py", "tools/forms.py"}


def test_events_are_framed_in_one_place() -> None:
    framing = {
        name
        for name, tree in modules()
        if any(text.startswith(("data: ", "event: ", "\ndata: ")) for text in texts_in(tree))
    }
    assert framing == {"wire/sse.py"}


def test_text_is_escaped_for_tags_in_one_place_and_for_pages_in_another() -> None:
    escaping = {
        name for name, tree in modules() if {"html.escape", "xml.sax.saxutils.escape"} & names_in(tree)
    }
    assert escaping <= {"wire/markup.py", "server/landing.py", "demo/lamp.py"}
    assert "wire/markup.py" in escaping


@pytest.mark.parametrize(
    "source",
    [
        "import json\njson.loads(x)",
        "from json import loads as understood\nunderstood(x)",
        "import msgspec\nread = msgspec.json.Decoder(int).decode",
        "from msgspec.json import decode\ndecode(x)",
        "import msgspec.json\nmsgspec.json.decode(x)",
        "import pickle as p\np.loads(x)",
        "eval(x)",
        "from starlette.requests import Request\nawait Request(scope).json()",
    ],
)
def test_a_reader_is_found_however_it_is_written(source: str) -> None:
    assert readers_in(ast.parse(source))
