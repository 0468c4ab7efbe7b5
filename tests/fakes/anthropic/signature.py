"""The signature of a thinking block: invalid once a letter of the block changes."""

from __future__ import annotations

import hashlib

from tests.fakes.provider import Json


def signature_of(thinking: str) -> str:
    return "seal_" + hashlib.sha256(f"fake-anthropic:{thinking}".encode()).hexdigest()[:32]


def is_signed(block: Json) -> bool:
    return block.get("signature") == signature_of(str(block.get("thinking")))
