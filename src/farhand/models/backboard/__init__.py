"""Backboard, which keeps assistants and threads of its own: `pip install 'farhand[backboard]'`."""

from farhand.models.backboard.model import Backboard

__all__ = ["Backboard"]
