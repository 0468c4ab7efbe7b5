"""Ids of calls and names of tools that a provider accepts, for one request.

Owns the rule that no two calls of a request share an id and no two tools a name, whatever a provider sent
before. It must not know the request format of any provider.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from farhand.core.thread import Asked, AssistantMessage, Message

_FITS = re.compile(r"[A-Za-z0-9_-]+")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class CallIds:
    """The id of each call in one request: the provider's own, or ours if that one cannot be used.

    Providers repeat `call_0` every turn, send no id, or refuse the id of another provider. Ours is unique,
    valid everywhere, and the same in every later request.
    """

    def __init__(self, messages: Iterable[Message], *, longest: int = 64) -> None:
        self._ids: dict[str, str] = {}
        used: set[str] = set()
        for asked in calls_in_messages(messages):
            theirs = asked.model_call_id or ""
            good = theirs not in used and len(theirs) <= longest and _FITS.fullmatch(theirs) is not None
            self._ids[asked.call_id] = theirs if good else asked.call_id
            used.add(self._ids[asked.call_id])

    def __getitem__(self, call_id: str) -> str:
        return self._ids[call_id]


class ToolNames:
    """Tool names as a provider takes them, and back.

    A name that is not valid gets an alias that depends only on the name, so that the history is the same in
    every request.
    """

    def __init__(self, names: Iterable[str], *, longest: int = 64) -> None:
        self._longest = longest
        known = dict.fromkeys(names)
        self._aliases = {name: name for name in known if self._fits(name)}
        for name in known:
            if name not in self._aliases:
                self._aliases[name] = self._alias(name)
        self._names = {alias: name for name, alias in self._aliases.items()}

    def alias(self, name: str) -> str:
        return self._aliases[name]

    def name(self, alias: str) -> str:
        """The tool with this alias; a name that the model made up is returned unchanged."""
        return self._names.get(alias, alias)

    def _fits(self, name: str) -> bool:
        return len(name) <= self._longest and _FITS.fullmatch(name) is not None

    def _alias(self, name: str) -> str:
        mark = hashlib.sha256(name.encode(errors="replace")).hexdigest()
        readable = _UNFIT.sub("_", name)
        for size in range(8, len(mark)):
            alias = f"{readable[: self._longest - size - 1]}_{mark[:size]}"
            if alias not in self._aliases.values():
                return alias
        raise AssertionError("two names have the same SHA-256")


def calls_in_messages(messages: Iterable[Message]) -> Iterator[Asked]:
    return (asked for each in messages if isinstance(each, AssistantMessage) for asked in each.asked)
