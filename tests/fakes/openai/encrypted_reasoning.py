"""The encrypted content of a reasoning item: it fits that item and no other."""

from __future__ import annotations

import hashlib

import msgspec

from tests.fakes.provider import Json


def sealed(item: Json) -> str:
    facts = msgspec.json.encode([item.get("id"), item.get("summary")], order="sorted")
    return "gAAAA" + hashlib.sha256(b"fake-openai:" + facts).hexdigest()[:40]


def is_sealed(item: Json) -> bool:
    return item.get("encrypted_content") == sealed(item)
