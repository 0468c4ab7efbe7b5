"""Structs that programs create with keyword arguments, such as `Limits(chat_body=…)`.

msgspec's sentence for a misspelled argument names neither the struct nor the argument that was meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct, StructMeta

from farhand.errors import BadSetting, suggest_name

T = TypeVar("T", bound=Struct)


class _ExplainedMeta(StructMeta):
    # mypy does not see that an instance of this metaclass is a class
    def __call__(self: type[T], *args: object, **kwargs: object) -> T:  # type: ignore[misc]
        try:
            made: T = StructMeta.__call__(self, *args, **kwargs)
        except TypeError as error:
            raise _explain(error, self.__name__, self.__struct_fields__, kwargs) from None
        return made


class ExplainedStruct(Struct, frozen=True, kw_only=True, metaclass=_ExplainedMeta):
    """Raises `BadSetting` for an argument that it does not have."""


def _explain(error: TypeError, name: str, known: Iterable[str], given: Iterable[str]) -> BadSetting:
    unknown = next((each for each in given if each not in known), None)
    if unknown is None:
        return BadSetting(f"{name}(): {error}.", hint="Write its arguments as name=value.")
    return BadSetting(f"{name}() has no argument `{unknown}`{suggest_name(unknown, known)}")
