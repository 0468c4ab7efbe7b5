"""Turns an error of a provider into messages: one sentence for people in the chat, all details for operators.

Owns the wording. It must not know any provider's library: adapters describe what they saw.
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
# some servers answer 500 to a request that they do not support
_REFUSED_STATUS = frozenset({400, 413, 415, 422, 500, 501})
_PAGE_MARKS = ("<!doctype html", "<html")
_WORDS_SHOWN = 600
_SECONDS_SHOWN = 120
_MINUTES_SHOWN = 180
_DAYS_SHOWN = 2


class ProviderError(Struct, frozen=True, kw_only=True):
    """What an adapter saw. `status` is None if there was no response at all."""

    provider: str
    model: str
    key_setting: str
    status: int | None = None
    words: str = ""
    code: str = ""
    wait_sec: float | None = None
    """How long the provider asks to wait."""
    has_key: bool = True


class RequestRefused(ModelFault):
    """The provider refused this request; it might accept a different one."""

    status: int | None = None


class AnswerFailed(Exception):
    """The stream contains an error instead of an answer; the status of the response was 200."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


def model_fault(error: ProviderError) -> ModelFault:
    case = _case(error)
    facts = {"who": error.provider, "model": error.model, "key": error.key_setting}
    made = RequestRefused if error.status in _REFUSED_STATUS else ModelFault
    fault = made(
        capitalize(case.sentence.format(status=error.status, **facts)),
        hint=_hint(case.hint, error).format(**facts),
        provider_message="" if _is_a_page(error.words) else _shortened(error.words),
        public=_public(case, error),
    )
    if isinstance(fault, RequestRefused):
        fault.status = error.status
    return fault


def stream_cut(provider: str, why: str = "") -> ModelFault:
    """For an answer that began and did not end."""
    words = f" ({_shortened(why)})" if why else ""
    return ModelFault(
        f"The answer of {provider} was cut off{words}.",
        hint="Send the message again.",
        public="The model's answer was cut off. Send the message again.",
    )


def unreadable_stream(provider: str) -> ModelFault:
    """For an answer that began well and then did not follow the API."""
    return ModelFault(
        capitalize(f"{provider} sent something that cannot be decoded."),
        hint="Send the message again; if it persists, check the proxies on the way.",
        public="The model's answer could not be read. Send the message again.",
    )


def unexpected_response(provider: str) -> ModelFault:
    """For a successful response that does not follow the API."""
    return ModelFault(
        capitalize(f"{provider} answered, but not with its API: this may be a web page or another service."),
        hint="Check the address (base_url), then send the message again.",
        public=_NOT_SET_UP,
    )


def capitalize(words: str) -> str:
    """The text with a capital letter: it may begin with a provider's name or with a description of one."""
    return f"{words[:1].upper()}{words[1:]}"


def is_context_overflow(words: str) -> bool:
    """True if a provider says that the conversation is too long."""
    return any(mark in words.lower() for mark in _TOO_LONG_MARKS)


def format_duration(seconds: float) -> str:
    """A duration for people."""
    if seconds < _SECONDS_SHOWN:
        return f"{round(seconds, 2):g} s"
    if seconds > _DAYS_SHOWN * 86_400:
        return "some days"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} minutes" if minutes < _MINUTES_SHOWN else f"{math.ceil(minutes / 60)} hours"


class _Case(NamedTuple):
    """`sentence` and `hint` are for operators, `public` is for people in the chat."""

    sentence: str
    hint: str
    public: str


def _case(error: ProviderError) -> _Case:
    if error.status is None:
        return _UNREACHABLE
    if is_context_overflow(f"{error.code} {error.words}"):
        return _TOO_LONG
    if error.status == 401 and not error.has_key:
        return _NO_KEY
    if error.status < 500 and _is_a_page(error.words):
        return _WRONG_ADDRESS
    known = _BY_STATUS.get(error.status)
    return known or (_INTERNAL_ERROR if error.status >= 500 else _REFUSED)


def _public(case: _Case, error: ProviderError) -> str:
    if error.wait_sec is None or not _is_temporary(error):
        return case.public
    return f"The model accepts no requests right now. Try again in {format_duration(error.wait_sec)}."


def _is_temporary(error: ProviderError) -> bool:
    return error.status is not None and (error.status == 429 or error.status >= 500)


def _hint(hint: str, error: ProviderError) -> str:
    if _is_temporary(error) and error.wait_sec is not None:
        return f"Send the message again in {format_duration(error.wait_sec)}; earlier requests are refused."
    return hint


def _is_a_page(words: str) -> bool:
    """True for a web page: no API reports errors in HTML, but proxies and other servers do."""
    return any(mark in words.lower() for mark in _PAGE_MARKS)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_SHOWN else f"{line[:_WORDS_SHOWN]}…"


_NOT_SET_UP = "The model is not set up correctly on this server. Only its operator can change that."
_UNREACHABLE = _Case(
    "{who} could not be reached.",
    "Check the network and the address, then send the message again.",
    "The model could not be reached. Try again later.",
)
_TOO_LONG = _Case(
    "The conversation is too long for {model}.",
    "Start a new thread, or choose a model with a larger context window.",
    "This conversation is too long for the model. Start a new one.",
)
_NO_KEY = _Case("{who} requires a key (401), and none is set.", "Set {key}.", _NOT_SET_UP)
_WRONG_ADDRESS = _Case(
    "The server at this address is not {who}: it sent a web page ({status}).",
    "Check the address (base_url).",
    _NOT_SET_UP,
)
_BAD_KEY = _Case("{who} did not accept the key ({status}).", "Check {key}.", _NOT_SET_UP)
_REFUSED = _Case(
    "{who} refused the request ({status}).",
    "The conversation is kept; send another message to continue.",
    "The model refused this request. The conversation is kept; send another message to continue.",
)
_INTERNAL_ERROR = _Case(
    "{who} has an internal error ({status}).",
    "Send the message again later.",
    "The model is not available right now. Try again later.",
)
_BY_STATUS = {
    401: _BAD_KEY,
    403: _BAD_KEY,
    404: _Case(
        "{who} does not know the requested resource (404).",
        "Check the address and the model's name, '{model}'.",
        _NOT_SET_UP,
    ),
    413: _TOO_LONG,
    429: _Case(
        "{who} accepts no more requests for now (429).",
        "Wait a minute, then send the message again; if it persists, check the limits of your plan.",
        "The model accepts no more requests right now. Try again in a minute.",
    ),
}
