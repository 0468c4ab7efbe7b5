"""How many pairs of a face and an attack there are; however many ways one is tried, it counts once."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import groupby
from pathlib import Path

import pytest

from tests.security.attack import ALL, PAIRS

GROUPS = (
    "authentication", "exactly_once", "forged_history_and_approvals", "hostile_json", "hostile_schemas",
    "streams_and_sockets", "exhaustion", "browser",
)  # fmt: skip
AT_LEAST = 150


def test_there_are_enough_attacks_in_every_group_and_on_every_face(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        import_module(f"tests.security.{path.stem}")
    with capsys.disabled():
        sys.stdout.write(_told())
    assert {group for group, _, _ in PAIRS} == set(GROUPS)
    assert {face for _, face, _ in PAIRS} >= set(ALL)
    assert len({(face, attack) for _, face, attack in PAIRS}) >= AT_LEAST


def _told() -> str:
    lines = []
    for group, pairs in groupby(sorted(PAIRS), key=lambda pair: pair[0]):
        listed = sorted(pairs, key=lambda pair: pair[2])
        lines.append(f"\n{group}: {len(listed)}")
        for attack, faces in groupby(listed, key=lambda pair: pair[2]):
            lines.append(f"  {attack} [{', '.join(face for _, face, _ in faces)}]")
    return "\n".join([*lines, f"{len(PAIRS)} pairs of face and attack", ""])
