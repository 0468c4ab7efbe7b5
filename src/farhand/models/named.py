"""A model by its name, such as `anthropic:claude-sonnet-5`. The only module that names the providers."""

from __future__ import annotations

from collections.abc import Callable

from farhand.errors import BadSetting
from farhand.models.base import Model


def model_named(name: str) -> Model:
    provider, _, rest = name.partition(":")
    make = PROVIDERS.get(provider)
    if make is None or not rest:
        known = ", ".join(f"{each}:…" for each in sorted(PROVIDERS))
        raise BadSetting(f"There is no model '{name}'.", hint=f"Known: {known}.")
    return make(rest)


# A provider's library is loaded only for who asks for it; without it, loading the adapter is a `BadSetting`.


def _anthropic(model: str) -> Model:
    from farhand.models.anthropic import Anthropic  # noqa: PLC0415

    return Anthropic(model)


def _openai(model: str) -> Model:
    from farhand.models.openai import OpenAI  # noqa: PLC0415

    return OpenAI(model)


def _openai_chat(model: str) -> Model:
    from farhand.models.openai import OpenAIChat  # noqa: PLC0415

    return OpenAIChat(model)


def _backboard(model: str) -> Model:
    from farhand.models.backboard import Backboard  # noqa: PLC0415

    return Backboard(model)


def _scripted(path: str) -> Model:
    from farhand.models.scripted import ScriptedModel  # noqa: PLC0415

    return ScriptedModel.from_yaml(path)


PROVIDERS: dict[str, Callable[[str], Model]] = {
    "anthropic": _anthropic,
    "backboard": _backboard,
    "openai": _openai,
    "openai-chat": _openai_chat,
    "scripted": _scripted,
}
