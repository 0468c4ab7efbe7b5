"""What `farhand.testing` offers, loaded when it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import farhand.testing


@pytest.mark.parametrize("name", farhand.testing.__all__)
def test_every_name_that_is_promised_can_be_loaded(name: str) -> None:
    assert getattr(farhand.testing, name).__name__ == name
    assert name in dir(farhand.testing)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(farhand.testing, "Nothing")  # noqa: B009


def test_a_clock_loads_no_server() -> None:
    program = "import sys; from farhand.testing import FakeClock; assert 'starlette' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
