"""Loads a model by its name, such as `anthropic:claude-sonnet-5`.

A provider's library is loaded only when it is used; if it is not installed, that is a `BadSetting`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from operator import attrgetter

from farhand import models
from farhand.errors import BadSetting
from farhand.models.base import Model
from farhand.models.settings import one_line

PROVIDERS = {
    "anthropic": "Anthropic",
    "backboard": "Backboard",
    "openai": "OpenAI",
    "openai-chat": "OpenAIChat",
    "scripted": "ScriptedModel.from_yaml",
}
"""By the first part of a name: what creates the model, as `farhand.models` names it."""


def load_model(name: str, *, base_url: str | None = None) -> Model:
    """The model with this name: `load_model("openai-chat:llama3", base_url="http://127.0.0.1:11434/v1")`.

    `base_url` overrides the address of the provider and of the environment.
    """
    provider, _, rest = name.partition(":")
    if provider not in PROVIDERS or not rest:
        near = get_close_matches(provider, PROVIDERS, n=1, cutoff=0.75)
        if near and rest:
            raise BadSetting(
                f"There is no model '{one_line(name)}'; did you mean `{near[0]}:{one_line(rest)}`?"
            )
        known = ", ".join(f"{each}:…" for each in sorted(PROVIDERS))
        raise BadSetting(f"There is no model '{one_line(name)}'.", hint=f"Known: {known}.")
    make: Callable[..., Model] = attrgetter(PROVIDERS[provider])(models)
    if base_url is None:
        return make(rest)
    if provider == "scripted":
        raise BadSetting("A scripted model is a file and has no base_url.", hint="Remove base_url.")
    return make(rest, base_url=base_url)
