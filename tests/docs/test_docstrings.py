"""The examples in the docstrings of the public modules for models, messages and tests run."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator

import pytest

MODULES = ("farhand.messages", "farhand.models", "farhand.testing")


def docstrings() -> Iterator[tuple[str, str]]:
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        yield module_name, inspect.getdoc(module) or ""
        for name in module.__all__:
            yield f"{module_name}.{name}", inspect.getdoc(getattr(module, name)) or ""


@pytest.mark.parametrize(
    ("place", "text"), [pytest.param(place, text, id=place) for place, text in docstrings() if "```" in text]
)
def test_an_example_in_a_docstring_runs(place: str, text: str) -> None:
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        # the example is part of the repository
        exec(compile(textwrap.dedent(block), place, "exec"), {"__name__": place})


@pytest.mark.parametrize("module_name", MODULES)
def test_every_public_name_is_listed_and_can_be_loaded(module_name: str) -> None:
    module = importlib.import_module(module_name)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(module, "Nothing")  # noqa: B009
