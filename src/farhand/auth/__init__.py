"""Ready-made `authenticate` hooks: tokens in a file, JSON Web Tokens, a header of a trusted proxy.

Pass one to `create_app(authenticate=…)`: it returns a `Principal` or None. The hooks must not know the
server. They are imported on first use, since web tokens need another library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farhand.auth.proxy_header import ProxyHeader
    from farhand.auth.token_file import TokenFile
    from farhand.auth.web_token import WebToken

__all__ = ["ProxyHeader", "TokenFile", "WebToken"]

_HOMES = {
    "ProxyHeader": "farhand.auth.proxy_header",
    "TokenFile": "farhand.auth.token_file",
    "WebToken": "farhand.auth.web_token",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'farhand.auth' has no attribute {name!r}")
    return getattr(import_module(home), name)
