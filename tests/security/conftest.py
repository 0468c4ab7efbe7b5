"""The server that the tests of the faces talk to, here too."""

from __future__ import annotations

from tests.faces.conftest import serve

__all__ = ["serve"]
