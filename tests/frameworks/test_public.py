"""Each bridge is a public module: what it lists is there and documented, and its example runs."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.requirement import requirement

SHARED = {"__init__", "bridge", "provider_calls", "far_tools"}
FOLDER = Path(__file__).parents[2] / "src/farhand/bridges"
BRIDGES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


@requirement("surface:public")
@pytest.mark.parametrize("name", BRIDGES)
def test_a_bridge_lists_documented_names_and_its_example_runs(name: str) -> None:
    module = import_module(f"farhand.bridges.{name}")
    assert module.__doc__
    assert all(getattr(module, each).__doc__ for each in module.__all__)
    [example] = re.findall(r"```python\n(.*?)```", module.__doc__, flags=re.DOTALL)
    # the example is part of the repository
    exec(compile(example, name, "exec"), {"__name__": name})
