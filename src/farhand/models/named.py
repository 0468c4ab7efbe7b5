"""A model by its name, such as `anthropic:claude-sonnet-5`. The only module that names the providers.

A provider's library is loaded only for who asks for it; without it, loading the adapter is a `BadSetting`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter

from farhand.errors import BadSetting
from farhand.models.base import Model
from farhand.models.settings import shown_as_set

# provider -> the module of its adapter, and what makes a model there
PROVIDERS: dict[str, tuple[str, str]] = {
    "anthropic": ("farhand.models.anthropic", "Anthropic"),
    "backboard": ("farhand.models.backboard", "Backboard"),
    "openai": ("farhand.models.openai", "OpenAI"),
    "openai-chat": ("farhand.models.openai", "OpenAIChat"),
    "scripted": ("farhand.models.scripted", "ScriptedModel.from_yaml"),
}


def model_named(name: str, *, base_url: str | None = None) -> Model:
    """`base_url` is where the model is, if not where its provider or the environment says."""
    provider, _, rest = name.partition(":")
    if provider not in PROVIDERS or not rest:
        known = ", ".join(f"{each}:…" for each in sorted(PROVIDERS))
        raise BadSetting(f"There is no model '{shown_as_set(name)}'.", hint=f"Known: {known}.")
    module, maker = PROVIDERS[provider]
    make: Callable[..., Model] = attrgetter(maker)(import_module(module))
    if base_url is None:
        return make(rest)
    if provider == "scripted":
        raise BadSetting("A script is a file: it has no base_url.", hint="Leave base_url out.")
    return make(rest, base_url=base_url)
