"""A tool in a unit test can ask whom it works for."""

from __future__ import annotations

import pytest

from farhand import Owner, current
from farhand.errors import Misuse
from farhand.testing import acting_for


def test_a_tool_under_test_works_for_whom_the_test_says() -> None:
    with acting_for(Owner("acme", "ann"), {"plan": "pro"}) as context:
        assert current() is context
        assert context.claims == {"plan": "pro"}
        with pytest.raises(Misuse, match="available only while a tool is being executed"):
            context.progress("half")
    with pytest.raises(Misuse):
        current()
