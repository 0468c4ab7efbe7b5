"""Sets the person that `current()` returns, for unit tests of tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from farhand.core.principal import LOCAL, Claims, Owner
from farhand.tools.context import Context, acting


@contextmanager
def acting_for(
    owner: Owner = LOCAL, claims: Claims | None = None, *, thread: str = "t1"
) -> Iterator[Context]:
    """Inside the block, `current()` returns a context of this person.

    >>> from farhand import Owner, current
    >>> from farhand.testing import acting_for
    >>> with acting_for(Owner("acme", "ann"), {"plan": "pro"}):
    ...     current().owner.subject
    'ann'
    """
    context = Context(owner=owner, claims=claims or {}, thread_id=thread, call_id="call_test")
    with acting(context):
        yield context
