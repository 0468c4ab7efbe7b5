from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from farhand.faces.ui_stream.shapes import Chunk
from scripts.make_openapi import TARGET as OPENAPI
from scripts.make_schema import PROTOCOL, SCHEMA, files

TRANSCRIPTS = sorted((SCHEMA / "transcripts" / "ui_stream").glob("*.jsonl"))


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_what_is_published_is_what_the_shapes_say(path: Path) -> None:
    assert path.read_text() == files()[path], "run: python scripts/make_schema.py"


def test_nothing_else_is_published() -> None:
    published = {*SCHEMA.glob("*.json"), *PROTOCOL.glob("**/*")}
    assert published == {*files(), OPENAPI}


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_every_chunk_of_the_transcripts_has_a_published_shape(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    chunks = [line["chunk"] for line in lines if "chunk" in line]
    assert chunks
    for chunk in chunks:
        # unknown fields are forbidden there, so this also finds what a shape forgot
        msgspec.convert(chunk, type=Chunk)
