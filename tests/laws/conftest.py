"""The laws are published with farhand, so pytest has to be told that their assertions are tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("farhand.testing.store_laws")
