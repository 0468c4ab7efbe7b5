"""Writes schema/openapi.json from the routes of the faces. A file that is out of date fails a test."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path

from farhand.agent.agent import Agent
from farhand.models.scripted import ScriptedModel
from farhand.server.app import create_app
from farhand.server.openapi import openapi_of

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "schema" / "openapi.json"


def main() -> None:
    TARGET.write_text(document())
    print(f"schema: {TARGET.relative_to(ROOT)} written")


def document() -> str:
    """The document of an app from `create_app`, without routes that exist only during development."""
    return asyncio.run(_document())


async def _document() -> str:
    app = create_app(Agent(ScriptedModel(["Hello."])), store="memory:")
    async with app.lifespan():
        faces = [face for face in app.faces if face.name != "development"]
        written = openapi_of(faces, version=_version())
    return json.dumps(written, indent=2, ensure_ascii=False) + "\n"


def _version() -> str:
    read = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return str(read["project"]["version"])


if __name__ == "__main__":
    main()
