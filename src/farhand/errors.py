"""Everything farhand raises, and who is at fault.

    FarhandError                    code · what happened · what to do next
    ├── PeerFault                   what came over the wire
    │   ├── Malformed               the bytes are not what the route takes
    │   ├── TooLarge                a limit of size was passed
    │   ├── TooSlow                 the body did not arrive in time
    │   ├── TooMany                 a limit of number or rate was passed
    │   ├── WrongMethod             the path is there, but not for this method
    │   ├── WrongType               another Content-Type than the route takes
    │   ├── SignInNeeded            no credential, or one that is not valid
    │   ├── NotAllowed              Host, Origin or scope is not on the list
    │   ├── NotFound                unknown, or somebody else's: nobody can tell which
    │   ├── NoAgent                 the app has tools and no model
    │   ├── Busy                    the thread's run is working; ask again when it is done
    │   ├── Unanswered              the thread's run waits for answers that the request does not bring
    │   ├── NameTaken               the name, or the key, belongs to something else already
    │   ├── Superseded              another program listens as this client now
    │   ├── Rejected                a farhand server said no to what this program asked
    │   ├── ResultMismatch          results for other calls than the open ones
    │   └── ResultRefused           none of the results was taken, each for its own reason
    ├── Misuse                      the program using farhand
    │   ├── BadTool                 a declaration that cannot become a tool
    │   ├── DuplicateTool           a name registered twice; the first one stays
    │   └── BadSetting              a setting, address or module that cannot be used
    └── Broken                      farhand, its store or its model
        ├── ShuttingDown            the server is about to stop; come back in a moment
        ├── StoreDown               the store does not answer; nothing is known to be accepted
        ├── SignInDown              the hook that knows who somebody is failed; nobody was let in or sent away
        ├── StoreLocked             another process has the store's file
        ├── Unreadable              a stored record makes no sense to this version; the others do
        ├── ModelFault              the provider failed; the history is intact
        └── LostClaim               another worker advances this run now; stop writing

A tool that raises is not an error: it is a `Failure`.
"""

from __future__ import annotations

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
    """The base: a stable `code`, a sentence, and the next step."""

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
    """`takes_token` if the server's own development token is what is missing: a page can ask for it."""

    code = "unauthenticated"

    def __init__(self, message: str, *, hint: str = "", takes_token: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.takes_token = takes_token


class NotAllowed(PeerFault):
    code = "forbidden"


class NotFound(PeerFault):
    code = "unknown"


class NoAgent(PeerFault):
    """This app has tools and no model: it serves calls, not conversations."""

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
    """`status` and `answered` are the server's own: its HTTP status and its code."""

    code = "rejected"

    def __init__(self, message: str, *, hint: str = "", status: int = 0, answered: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.answered = answered


class ResultMismatch(PeerFault, ValueError):
    """A `ValueError` too, since library users hand results in from Python."""

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
    """A `ValueError` too, since library users hand results in from Python."""

    code = "refused"


class Misuse(FarhandError):
    code = "misuse"


class BadTool(Misuse):
    code = "bad_tool"


class DuplicateTool(Misuse):
    code = "duplicate_tool"


class BadSetting(Misuse):
    code = "bad_setting"


def not_installed(who: str, extra: str) -> BadSetting:
    """What to say where a library of this extra is missing."""
    return BadSetting(
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
    """`message` and `hint` are for whoever runs the server, `words` are the provider's own.

    People who chat are told `public` and nothing else: the rest may name keys, hosts and code.
    """

    code = "model_fault"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        words: str = "",
        public: str = "The model failed. Try again later.",
    ) -> None:
        super().__init__(message, hint=hint)
        self.words = words
        self.public = public

    @property
    def detail(self) -> str:
        """All of it, for the log and for the program that uses farhand."""
        return f"{self}\nThe provider says: {self.words}" if self.words else str(self)


class LostClaim(Broken):
    code = "lost_claim"
