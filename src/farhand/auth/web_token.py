"""JSON Web Tokens that somebody else signed. The only module that imports PyJWT.

Which algorithms count is fixed here and never taken from the token: one that says `none`, or that signs with
a public key as if it were a secret, is no token. It must name this server as its audience, and it must end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

import jwt
from starlette.requests import HTTPConnection

from farhand.auth.shown import bearer, is_name, known_scopes
from farhand.core.principal import DEFAULT_SCOPES, SCOPES, Principal
from farhand.errors import BadSetting

log = logging.getLogger("farhand.auth")

SHARED = frozenset({"HS256", "HS384", "HS512"})
ALGORITHMS = SHARED | {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"}
SHORTEST_SECRET = 32
LONGEST_TOKEN = 16 * 1024


class WebToken:
    """A hook. `keys` is one key, or keys by their `kid`: public keys in PEM, or secrets of 32 bytes."""

    # the knobs of a token, each of them a word that its user writes
    def __init__(
        self,
        keys: str | bytes | Mapping[str, str | bytes],
        *,
        algorithms: Sequence[str],
        audience: str,
        issuer: str,
        tenant: str | None = None,
        scopes: Collection[str] = DEFAULT_SCOPES,
    ) -> None:
        """`tenant` is that of all tokens; None takes it from their claim `tenant`.

        `scopes` are those of a token that names none in its claim `scope`.
        """
        self._keys = keys if isinstance(keys, Mapping) else {"": keys}
        self._has_names = isinstance(keys, Mapping)
        self._algorithms = _checked(algorithms, self._keys)
        if not audience or not issuer:
            raise BadSetting("Web tokens need an audience and an issuer.", hint="Name those of your tokens.")
        self._audience = audience
        self._issuer = issuer
        if tenant is not None and not is_name(tenant):
            raise BadSetting(
                "The tenant of the web tokens has no name.", hint="None takes it from each token."
            )
        self._tenant = tenant
        self._scopes = known_scopes(scopes)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        token = bearer(request)
        if token is None or len(token) > LONGEST_TOKEN:
            return None
        try:
            claims = self._claims(token)
        # the library reads what is nested deeply until the stack ends
        except (jwt.PyJWTError, KeyError, ValueError, TypeError, RecursionError) as error:
            # what a stranger sent is not repeated
            log.info("a web token was refused: %s", type(error).__name__)
            return None
        return self._principal(claims)

    def _claims(self, token: str) -> Mapping[str, object]:
        kid = jwt.get_unverified_header(token).get("kid", "") if self._has_names else ""
        claims: Mapping[str, object] = jwt.decode(
            token,
            self._keys[kid],
            algorithms=self._algorithms,
            audience=self._audience,
            issuer=self._issuer,
            options={"require": ["exp", "sub", "aud", "iss"]},
        )
        return claims

    def _principal(self, claims: Mapping[str, object]) -> Principal | None:
        tenant = self._tenant if self._tenant is not None else claims.get("tenant")
        subject = claims.get("sub")
        if not is_name(tenant) or not is_name(subject):
            return None
        said = claims.get("scope")
        if said is None:
            return Principal(tenant, subject, self._scopes)
        named = said.split() if isinstance(said, str) else said
        if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
            return None
        # it may be allowed other things elsewhere, which mean nothing here
        return Principal(tenant, subject, SCOPES.intersection(named))


def _check_keys(algorithms: Sequence[str], keys: Mapping[str, str | bytes]) -> None:
    """`BadSetting` for a set-up under which no token could ever be let in."""
    if not keys:
        raise BadSetting("There is no key for web tokens.", hint="Give one key, or some by their kid.")
    for name, key in keys.items():
        if not any(_takes(algorithm, key) for algorithm in algorithms):
            which = f"The key '{name}'" if name else "The key"
            raise BadSetting(
                f"{which} is none for {', '.join(algorithms)}.", hint="Public keys are given in PEM."
            )


def _takes(algorithm: str, key: str | bytes) -> bool:
    try:
        jwt.get_algorithm_by_name(algorithm).prepare_key(key)
    # what a library for keys raises depends on the key
    except Exception:  # noqa: BLE001
        return False
    return True


def _checked(algorithms: Sequence[str], keys: Mapping[str, str | bytes]) -> list[str]:
    unknown = [name for name in algorithms if name not in ALGORITHMS]
    if unknown or not algorithms or isinstance(algorithms, str):
        raise BadSetting(
            f"These are no algorithms for web tokens: {algorithms!r}.",
            hint=f"Name those your tokens are signed with, of {', '.join(sorted(ALGORITHMS))}.",
        )
    if not jwt.algorithms.has_crypto and any(name not in SHARED for name in algorithms):
        raise BadSetting("Public keys need one library more.", hint='Install "farhand[jwt]".')
    shared = [name for name in algorithms if name in SHARED]
    if shared and len(shared) < len(algorithms):
        raise BadSetting(
            "Secrets and public keys can't be mixed.",
            hint="Whoever knows the public key could sign with it as if it were the secret.",
        )
    if shared and any(len(key) < SHORTEST_SECRET for key in keys.values()):
        raise BadSetting(f"A secret has fewer than {SHORTEST_SECRET} bytes.", hint="Take a longer one.")
    _check_keys(algorithms, keys)
    return list(algorithms)
