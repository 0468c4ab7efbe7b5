"""Where a PostgreSQL store is: the address of a database, and the schema in it that holds our tables."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from farhand.errors import BadSetting

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "farhand"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")


class Place(Struct, frozen=True):
    """`dsn` may hold a password and is never shown; `name` may be."""

    dsn: str
    schema: str
    name: str

    @property
    def channel(self) -> str:
        """Notifications are heard in the whole database: each store has a channel of its own."""
        return f"farhand_{self.schema}"


def place_of(address: str) -> Place:
    """`postgresql://user:password@host:port/database?schema=name`; all but the scheme may be left out."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        # not in its words: what it could not read may be of the password
        raise _bad(_UNREADABLE) from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    if "@" in parts.path or parts.fragment or any("@" in key for key, _ in query):
        raise _bad(_UNREADABLE)
    schema = next((value for key, value in query if key == "schema"), DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise _bad("its schema must be a short name of small letters, digits and _")
    rest = urlencode([(key, value) for key, value in query if key != "schema"])
    # with its slashes also where no host is named: the driver asks for them
    dsn = f"postgresql://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
    host = parts.netloc.rpartition("@")[2] or dict(query).get("host", "")
    return Place(dsn, schema, f"{host}{parts.path} (schema {schema})")


_UNREADABLE = "where its host begins cannot be told; in a password write / ? # @ : as %2F %3F %23 %40 %3A"


def _bad(why: str) -> BadSetting:
    return BadSetting(
        f"The store address cannot be used: {why}.",
        hint="Use postgresql://user:password@host/database, with ?schema=name if you like.",
    )
