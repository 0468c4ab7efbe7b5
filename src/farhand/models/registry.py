"""Loads a model by its name, such as `anthropic:claude-sonnet-5`. The only module that names the providers.

A provider's library is loaded only when it is used; if it is not installed, that is a `BadSetting`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter

from farhand.errors import BadSetting
from farhand.models.base import Model
from farhand.models.settings import one_line

# provider -> the module of its adapter, and the function in it that creates a model
PROVIDERS: dict[str, tuple[str, str]] = {
    "anthropic": ("farhand.models.anthropic", "Anthropic"),
    "backboard": ("farhand.models.backboard", "Backboard"),
    "openai": ("farhand.models.openai", "OpenAI"),
    "openai-chat": ("farhand.models.openai", "OpenAIChat"),
    "scripted": ("farhand.models.scripted", "ScriptedModel.from_yaml"),
}


def load_model(name: str, *, base_url: str | None = None) -> Model:
    """The model with this name: `load_model("openai-chat:llama3", base_url="http://127.0.0.1:11434/v1")`.

    `base_url` overrides the address of the provider and of the environment.
    """
    provider, _, rest = name.partition(":")
    if provider not in PROVIDERS or not rest:
        known = ", ".join(f"{each}:…" for each in sorted(PROVIDERS))
        raise BadSetting(f"There is no model '{one_line(name)}'.", hint=f"Known: {known}.")
    module, maker = PROVIDERS[provider]
    make: Callable[..., Model] = attrgetter(maker)(import_module(module))
    if base_url is None:
        return make(rest)
    if provider == "scripted":
        raise BadSetting("A scripted model is a file and has no base_url.", hint="Remove base_url.")
    return make(rest, base_url=base_url)
