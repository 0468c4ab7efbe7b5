"""What each error code means and what to do next, for the page `/errors/{code}` and for the reference.

Owns those sentences. The code of an error never changes, its own message says more about one case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Explained(NamedTuple):
    meaning: str
    next_step: str


ERROR_CODES: Mapping[str, Explained] = {
    "model_fault": Explained(
        "The model, or the service that runs it, failed. The conversation is unchanged.",
        "Try again. If it fails again, the server's log and the Inspector have the message of the service.",
    ),
    "max_steps": Explained(
        "The run reached its maximum number of steps without an answer.",
        "Ask for less at a time, or raise `limits.max_steps`.",
    ),
    "stuck": Explained(
        "The model repeated the same call with the same input, and it failed each time.",
        "Find out in the Inspector why the call fails, and describe the expected input in the tool.",
    ),
    "broken": Explained(
        "An unexpected error occurred in the server.",
        "Send the request again. The server's log has the details.",
    ),
    "failed": Explained("The last answer ended without a result.", "Send the message again."),
    "invalid": Explained(
        "The request does not have the expected form, or a value in it is invalid.",
        "Correct what the message names; nothing was applied.",
    ),
    "too_large": Explained(
        "The request, a file or something else in it is larger than allowed.",
        "Send less, or raise the limit that the message names.",
    ),
    "too_slow": Explained("The request did not arrive in time.", "Send it again over a faster connection."),
    "too_many": Explained(
        "There were more requests, streams, runs or files than allowed.",
        "Wait for the number of seconds in `Retry-After`, or do what the message says.",
    ),
    "wrong_method": Explained("The address exists, but not for this method.", "Use a method from `Allow`."),
    "wrong_type": Explained(
        "The address does not accept this Content-Type, or this type of file.",
        "Send `application/json`, or a file of a type that the message names.",
    ),
    "unauthenticated": Explained("Nobody is signed in, or the credential is not valid.", "Sign in again."),
    "forbidden": Explained(
        "This sign-in, Host or Origin is not allowed to do this.",
        "Sign in with an account that is allowed, or use the option that the message names.",
    ),
    "unknown": Explained(
        "It does not exist, or it belongs to somebody else.", "Check the address or the id."
    ),
    "no_agent": Explained("The app has tools but no model.", "Call its tools, or give the app an agent."),
    "busy": Explained("The chat is still working on its last message.", "Wait until it is done, or stop it."),
    "interrupts": Explained(
        "The chat waits for answers that the request does not contain.", "Answer the open calls first."
    ),
    "conflict": Explained("The name or the key is already used for something else.", "Choose another one."),
    "superseded": Explained(
        "Another program has connected under the same client id.", "Give each program its own id."
    ),
    "rejected": Explained(
        "A farhand server refused a request of this program.", "Read the message for the reason."
    ),
    "mismatch": Explained(
        "The results are not for exactly the calls that are open.", "Send one result for each open call."
    ),
    "refused": Explained("No result was accepted.", "The reason is in the message; nothing was applied."),
    "shutting_down": Explained("The server is about to stop.", "Try again in a moment."),
    "store_down": Explained(
        "The store does not respond, so it is not known whether the request was accepted.",
        "Send the same request again; it is applied once.",
    ),
    "sign_in_down": Explained(
        "The server's own sign-in failed, so nobody has access.",
        "Try again; the server's log has the cause.",
    ),
    "store_locked": Explained(
        "Another process has the store open.", "Stop it, or choose another store with `--store`."
    ),
    "unreadable": Explained(
        "A stored record was written by another version of farhand.",
        "Use the version that wrote it, or a newer one.",
    ),
    "lost_claim": Explained("Another worker has taken over the run.", "Nothing: the run continues there."),
    "bad_tool": Explained("A declaration cannot become a tool.", "Correct what the message names."),
    "duplicate_tool": Explained("Two tools have the same name.", "Rename one of them with `name=`."),
    "bad_setting": Explained(
        "A setting, an address or a module cannot be used.", "Correct what the message names."
    ),
}
