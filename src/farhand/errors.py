"""Every exception that farhand raises, grouped by who is at fault.

    FarhandError                    code · what happened · what to do next
    ├── PeerFault                   what came over the wire
    │   ├── Malformed               the bytes are not what the route takes
    │   ├── TooLarge                a size limit was exceeded
    │   ├── TooSlow                 the body did not arrive in time
    │   ├── TooMany                 a rate limit or a quota was exceeded
    │   ├── WrongMethod             the path exists, but not for this method
    │   ├── WrongType               the route does not accept this Content-Type
    │   ├── SignInNeeded            no credential, or an invalid one
    │   ├── NotAllowed              Host, Origin or scope is not on the list
    │   ├── NotFound                it does not exist, or belongs to someone else: the answer is the same
    │   ├── NoAgent                 the app has tools but no model
    │   ├── Busy                    the thread's run is still working; try again when it is done
    │   ├── Unanswered              the thread's run waits for answers that the request does not contain
    │   ├── NameTaken               the name, or the key, is already used for something else
    │   ├── Superseded              another program has connected as this client
    │   ├── Rejected                a farhand server rejected a request of this program
    │   ├── ResultMismatch          the results are not for exactly the open calls
    │   └── ResultRefused           no result was accepted; each has its own reason
    ├── Misuse                      the program using farhand
    │   ├── BadTool                 a declaration that cannot become a tool
    │   ├── DuplicateTool           a name registered twice; the first tool is kept
    │   └── BadSetting              a setting, address or module that cannot be used
    │       └── NotInstalled        a library of an extra is missing; also an ImportError
    └── Broken                      farhand, its store or its model
        ├── ShuttingDown            the server is about to stop; try again in a moment
        ├── StoreDown               the store does not answer; whether anything was accepted is unknown
        ├── SignInDown              the `authenticate` hook failed; whether the credential is valid is unknown
        ├── StoreLocked             another process has the store's file open
        ├── Unreadable              this version cannot read one stored record; it can read the others
        ├── ModelFault              the provider failed; the history is intact
        └── LostClaim               another worker has taken over this run; stop writing

A tool that raises is not an error: it is a `Failure`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BadSetting",
    "BadTool",
    "Broken",
    "Busy",
    "DuplicateTool",
    "FarhandError",
    "LostClaim",
    "Malformed",
    "Misuse",
    "ModelFault",
    "NameTaken",
    "NoAgent",
    "NotAllowed",
    "NotFound",
    "NotInstalled",
    "PeerFault",
    "Rejected",
    "ResultMismatch",
    "ResultRefused",
    "ShuttingDown",
    "SignInDown",
    "SignInNeeded",
    "StoreDown",
    "StoreLocked",
    "Superseded",
    "TooLarge",
    "TooMany",
    "TooSlow",
    "Unanswered",
    "Unreadable",
    "WrongMethod",
    "WrongType",
]


class FarhandError(Exception):
    """Base of all errors: a stable `code`, a message, and a hint that says what to do next."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message = message
        self.hint = hint


class PeerFault(FarhandError):
    code = "peer_fault"


class Malformed(PeerFault):
    code = "invalid"


class TooLarge(PeerFault):
    code = "too_large"


class TooSlow(PeerFault):
    code = "too_slow"


class TooMany(PeerFault):
    code = "too_many"

    def __init__(self, message: str, *, hint: str = "", retry_after: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class WrongMethod(PeerFault):
    code = "wrong_method"


class WrongType(PeerFault):
    code = "wrong_type"


class SignInNeeded(PeerFault):
    """`takes_token` is True if the server's development token would be accepted: a page can ask for it."""

    code = "unauthenticated"

    def __init__(self, message: str, *, hint: str = "", takes_token: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.takes_token = takes_token


class NotAllowed(PeerFault):
    code = "forbidden"


class NotFound(PeerFault):
    code = "unknown"


class NoAgent(PeerFault):
    """The app has tools but no model: it serves calls, not conversations."""

    code = "no_agent"


class Busy(PeerFault):
    code = "busy"


class Unanswered(PeerFault):
    code = "interrupts"


class NameTaken(PeerFault):
    code = "conflict"


class Superseded(PeerFault):
    code = "superseded"


class Rejected(PeerFault):
    """`status` and `answered` are the HTTP status and the error code of the server's response."""

    code = "rejected"

    def __init__(self, message: str, *, hint: str = "", status: int = 0, answered: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.answered = answered


class ResultMismatch(PeerFault, ValueError):
    """Also a `ValueError`, since programs pass results in from Python."""

    code = "mismatch"

    def __init__(self, expected: list[str], got: list[str], *, doubled: list[str] | None = None) -> None:
        self.expected = expected
        self.got = got
        self.missing = sorted(set(expected) - set(got))
        self.unexpected = sorted(set(got) - set(expected))
        self.doubled = doubled or []
        super().__init__(
            f"Tool result mismatch: expected {sorted(expected)}, got {sorted(got)}.",
            hint="Send exactly one result for each call of the last pause; nothing was applied.",
        )


class ResultRefused(PeerFault, ValueError):
    """Also a `ValueError`, since programs pass results in from Python."""

    code = "refused"


class Misuse(FarhandError):
    code = "misuse"


class BadTool(Misuse):
    code = "bad_tool"


class DuplicateTool(Misuse):
    code = "duplicate_tool"


class BadSetting(Misuse):
    code = "bad_setting"


class NotInstalled(BadSetting, ImportError):
    """Also an `ImportError`, since programs try an import and do without it."""


def suggest_name(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the most similar one, if any."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.65)
    return f"; did you mean `{near[0]}`?" if near else "."


def not_installed(who: str, extra: str) -> NotInstalled:
    """The error to raise if a library of this extra is missing."""
    return NotInstalled(
        f"{who} need a library that is not installed.", hint=f"Install it: pip install 'farhand[{extra}]'."
    )


class Broken(FarhandError):
    code = "broken"


class ShuttingDown(Broken):
    code = "shutting_down"


class StoreDown(Broken):
    code = "store_down"


class SignInDown(Broken):
    code = "sign_in_down"


class StoreLocked(Broken):
    code = "store_locked"


class Unreadable(Broken):
    code = "unreadable"


class ModelFault(Broken):
    """`message`, `hint` and `provider_message` (what the provider itself wrote) are for the operator of the
    server.

    People who chat see only `public`: the rest may contain keys, host names and code.
    """

    code = "model_fault"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        provider_message: str = "",
        public: str = "The model failed. Try again later.",
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider_message = provider_message
        self.public = public

    @property
    def detail(self) -> str:
        """The message with the provider's own, for the log and for the program that uses farhand."""
        if not self.provider_message:
            return str(self)
        return f"{self}\nThe provider says: {self.provider_message}"


class LostClaim(Broken):
    code = "lost_claim"
