"""What is new in a text that arrives in pieces, whether the pieces are deltas or all of the text so far."""

from __future__ import annotations


class Fresh:
    """Some servers send what was added, some what there is by now; nothing says which.

    A piece that begins with all that came before could be either, so it is held back until the next one
    tells: a stream of whole texts goes on with it, a stream of deltas does not.
    """

    def __init__(self) -> None:
        self._said = ""
        self._held: str | None = None
        self._whole: bool | None = None

    def feed(self, piece: str) -> str:
        """What of this piece, and of the one held back, was not told yet."""
        if self._whole is True:
            return self._replace(piece)
        if self._whole is False or not self._said:
            return self._add(piece)
        if self._held is None:
            if _goes_on(piece, self._said):
                self._held = piece
                return ""
            self._whole = False
            return self._add(piece)
        held, self._held = self._held, None
        self._whole = _goes_on(piece, held)
        return self._replace(piece) if self._whole else self._add(held + piece)

    def rest(self) -> str:
        """At the end: what was held back. Two pieces, one all of the other and more, were whole texts."""
        held, self._held = self._held, None
        return "" if held is None else self._replace(held)

    def _add(self, piece: str) -> str:
        self._said += piece
        return piece

    def _replace(self, text: str) -> str:
        new = text[len(self._said) :] if text.startswith(self._said) else ""
        self._said = text if new else self._said
        return new


def _goes_on(piece: str, said: str) -> bool:
    return len(piece) > len(said) and piece.startswith(said)
