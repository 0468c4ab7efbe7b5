"""A provider's trouble in plain words: one sentence for people who chat, all of it for operators.

Owns the sentences. It must not know any provider's library: adapters say what they saw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from msgspec import Struct

from farhand.errors import ModelFault

_TOO_LONG_MARKS = (
    "context_length_exceeded",
    "context window",
    "maximum context length",
    "prompt is too long",
    "too large for model",
)
# some servers say of their own inability that they broke
_NOT_TAKEN = frozenset({400, 413, 415, 422, 500, 501})
_PAGE_MARKS = ("<!doctype html", "<html")
_WORDS_SHOWN = 600
_SECONDS_SHOWN = 120
_MINUTES_SHOWN = 180
_DAYS_SHOWN = 2


class Trouble(Struct, frozen=True, kw_only=True):
    """What an adapter saw. `status` is None if no answer came at all."""

    provider: str
    model: str
    key_setting: str
    status: int | None = None
    words: str = ""
    code: str = ""
    wait_sec: float | None = None
    """How long the provider wants to be left alone."""
    has_key: bool = True


class RequestRefused(ModelFault):
    """The provider did not take this request; it might take another one."""

    status: int | None = None


def fault_of(trouble: Trouble) -> ModelFault:
    case = _case(trouble)
    facts = {"who": trouble.provider, "model": trouble.model, "key": trouble.key_setting}
    made = RequestRefused if trouble.status in _NOT_TAKEN else ModelFault
    fault = made(
        as_sentence(case.sentence.format(status=trouble.status, **facts)),
        hint=_hint(case.hint, trouble).format(**facts),
        words="" if _is_a_page(trouble.words) else _shortened(trouble.words),
        public=_public(case, trouble),
    )
    if isinstance(fault, RequestRefused):
        fault.status = trouble.status
    return fault


def broke_off(provider: str, why: str = "") -> ModelFault:
    """An answer that began and has no end."""
    words = f" ({_shortened(why)})" if why else ""
    return ModelFault(
        f"The answer of {provider} broke off{words}.",
        hint="Send the message again.",
        public="The model's answer broke off. Send the message again.",
    )


def unreadable(provider: str) -> ModelFault:
    """An answer that began well and then was none of the API's."""
    return ModelFault(
        as_sentence(f"{provider} sent something that cannot be read."),
        hint="Send the message again; if it stays so, check what stands between here and there.",
        public="The model's answer could not be read. Send the message again.",
    )


def no_answer_of_its_api(provider: str) -> ModelFault:
    """Somebody is there and says yes, but not a word of the API."""
    return ModelFault(
        as_sentence(
            f"{provider} answered, but not as its API does: a web page, perhaps, or another service."
        ),
        hint="Check the address (base_url), then send the message again.",
        public=_NOT_SET_UP,
    )


def as_sentence(words: str) -> str:
    """The same words, which may begin with who it is about: some are names, some are not."""
    return f"{words[:1].upper()}{words[1:]}"


def is_too_long(words: str) -> bool:
    """Whether a provider says so of a conversation."""
    return any(mark in words.lower() for mark in _TOO_LONG_MARKS)


def in_words(seconds: float) -> str:
    """A length of time as a person says it."""
    if seconds < _SECONDS_SHOWN:
        return f"{round(seconds, 2):g} s"
    if seconds > _DAYS_SHOWN * 86_400:
        return "some days"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} minutes" if minutes < _MINUTES_SHOWN else f"{math.ceil(minutes / 60)} hours"


class _Case(NamedTuple):
    """`sentence` and `hint` are for operators, `public` is for people who chat."""

    sentence: str
    hint: str
    public: str


def _case(trouble: Trouble) -> _Case:
    if trouble.status is None:
        return _UNREACHABLE
    if is_too_long(f"{trouble.code} {trouble.words}"):
        return _TOO_LONG
    if trouble.status == 401 and not trouble.has_key:
        return _NO_KEY
    if trouble.status < 500 and _is_a_page(trouble.words):
        return _WRONG_PLACE
    known = _BY_STATUS.get(trouble.status)
    return known or (_THEIR_TROUBLE if trouble.status >= 500 else _REFUSED)


def _public(case: _Case, trouble: Trouble) -> str:
    if trouble.wait_sec is None or not _is_passing(trouble):
        return case.public
    return f"The model takes no requests right now. Try again in {in_words(trouble.wait_sec)}."


def _is_passing(trouble: Trouble) -> bool:
    return trouble.status is not None and (trouble.status == 429 or trouble.status >= 500)


def _hint(hint: str, trouble: Trouble) -> str:
    if _is_passing(trouble) and trouble.wait_sec is not None:
        return f"Send the message again in {in_words(trouble.wait_sec)}; it takes none before."
    return hint


def _is_a_page(words: str) -> bool:
    """True for a web page: no API says its errors in HTML, but proxies and other servers do."""
    return any(mark in words.lower() for mark in _PAGE_MARKS)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_SHOWN else f"{line[:_WORDS_SHOWN]}…"


_NOT_SET_UP = "The model is not set up correctly on this server. Its operator has to look at the log."
_UNREACHABLE = _Case(
    "{who} could not be reached.",
    "Check the network and the address, then send the message again.",
    "The model could not be reached. Try again later.",
)
_TOO_LONG = _Case(
    "The conversation is too long for {model}.",
    "Start a new thread, or choose a model that takes more.",
    "This conversation is too long for the model. Start a new one.",
)
_NO_KEY = _Case("{who} wants a key (401), and none is set.", "Set {key}.", _NOT_SET_UP)
_WRONG_PLACE = _Case(
    "What answers at this address is not {who}: it sent a web page ({status}).",
    "Check the address (base_url).",
    _NOT_SET_UP,
)
_BAD_KEY = _Case("{who} did not accept the key ({status}).", "Check {key}.", _NOT_SET_UP)
_REFUSED = _Case(
    "{who} refused the request ({status}).",
    "The conversation is kept; another message goes on from here.",
    "The model refused this request. The conversation is kept; send another message to continue.",
)
_THEIR_TROUBLE = _Case(
    "{who} has trouble of its own ({status}).",
    "Send the message again later.",
    "The model is not available right now. Try again later.",
)
_BY_STATUS = {
    401: _BAD_KEY,
    403: _BAD_KEY,
    404: _Case(
        "{who} does not know what it was asked for (404).",
        "Check the address and the model's name, '{model}'.",
        _NOT_SET_UP,
    ),
    413: _TOO_LONG,
    429: _Case(
        "{who} takes no more requests for now (429).",
        "Wait a minute, then send the message again; if it stays so, check the limits of your plan.",
        "The model takes no more requests right now. Try again in a minute.",
    ),
}
