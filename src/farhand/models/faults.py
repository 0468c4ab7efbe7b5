"""A provider's trouble in plain words, each with what to do next.

Owns the sentences. It must not know any provider's library: adapters say what they saw.
"""

from __future__ import annotations

from msgspec import Struct

from farhand.errors import ModelFault

_TOO_LONG_MARKS = (
    "context_length_exceeded",
    "context window",
    "maximum context length",
    "prompt is too long",
    "too large for model",
)
_WORDS_SHOWN = 600


class Trouble(Struct, frozen=True, kw_only=True):
    """What an adapter saw. `status` is None if no answer came at all."""

    provider: str
    model: str
    key_setting: str
    status: int | None = None
    words: str = ""
    code: str = ""


def fault_of(trouble: Trouble) -> ModelFault:
    sentence, hint = _sentence(trouble)
    facts = {"who": trouble.provider, "model": trouble.model, "key": trouble.key_setting}
    says = f" It says: {_shortened(trouble.words)}" if trouble.words else ""
    told = sentence.format(status=trouble.status, **facts)
    return ModelFault(f"{told}{says}", hint=hint.format(**facts))


def broke_off(provider: str, why: str = "") -> ModelFault:
    """An answer that began and has no end."""
    words = f" ({_shortened(why)})" if why else ""
    return ModelFault(f"The answer of {provider} broke off{words}.", hint="Send the message again.")


def _sentence(trouble: Trouble) -> tuple[str, str]:
    if trouble.status is None:
        return _UNREACHABLE
    words = f"{trouble.code} {trouble.words.lower()}"
    if any(mark in words for mark in _TOO_LONG_MARKS):
        return _TOO_LONG
    known = _BY_STATUS.get(trouble.status)
    return known or (_THEIR_TROUBLE if trouble.status >= 500 else _REFUSED)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_SHOWN else f"{line[:_WORDS_SHOWN]}…"


_UNREACHABLE = (
    "{who} could not be reached.",
    "Check the network and the address, then send the message again.",
)
_TOO_LONG = (
    "The conversation is too long for {model}.",
    "Start a new thread, or choose a model that takes more.",
)
_BAD_KEY = ("{who} did not accept the key ({status}).", "Check {key}.")
_REFUSED = (
    "{who} refused the request ({status}).",
    "The conversation is kept; another message goes on from here.",
)
_THEIR_TROUBLE = ("{who} has trouble of its own ({status}).", "Send the message again later.")
_BY_STATUS = {
    401: _BAD_KEY,
    403: _BAD_KEY,
    404: (
        "{who} does not know what it was asked for (404).",
        "Check the address and the model's name, '{model}'.",
    ),
    413: _TOO_LONG,
    429: (
        "{who} takes no more requests for now (429).",
        "Wait a minute, then send the message again; if it stays so, check the limits of your plan.",
    ),
}
