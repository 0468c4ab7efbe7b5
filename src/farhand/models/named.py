"""A model by its name, such as `scripted:talk.yaml`. The only module that names the providers."""

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


def _scripted(path: str) -> Model:
    # a provider's library is loaded only for who asks for it
    from farhand.models.scripted import ScriptedModel  # noqa: PLC0415

    return ScriptedModel.from_yaml(path)


PROVIDERS: dict[str, Callable[[str], Model]] = {"scripted": _scripted}
