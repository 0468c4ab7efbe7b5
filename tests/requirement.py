"""The mark that links a test to a promise in requirements.toml."""

from __future__ import annotations

import pytest


def requirement(requirement_id: str) -> pytest.MarkDecorator:
    """Say which promise a test proves; in `pytestmark`, which one a whole module proves."""
    return pytest.mark.requirement(requirement_id)
