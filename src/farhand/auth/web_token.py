"""Verifies JSON Web Tokens of an identity provider. The only module that imports PyJWT.

Which algorithms count is fixed here and never taken from the token: one that says `none`, or that signs with
a public key as if it were a secret, is no token. It must name this server as its audience, and it must end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from starlette.requests import HTTPConnection

from farhand.auth.credentials import bearer, check_scopes, is_name
from farhand.core.principal import DEFAULT_SCOPES, SCOPES, Principal
from farhand.errors import BadSetting, not_installed

try:
    import jwt
    from jwt.algorithms import has_crypto
except ModuleNotFoundError as error:
    raise not_installed("JSON Web Tokens", "jwt") from error

log = logging.getLogger("farhand.auth")

SHARED = frozenset({"HS256", "HS384", "HS512"})
ALGORITHMS = SHARED | {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"}
SHORTEST_SECRET = 32
LONGEST_TOKEN = 16 * 1024


class WebToken:
    """A hook. `keys` is one key, or keys by their `kid`: public keys in PEM, or secrets of 32 bytes."""

    # all of them are keyword arguments of the public interface
    def __init__(  # noqa: PLR0913
        self,
        keys: str | bytes | Mapping[str, str | bytes],
        *,
        algorithms: Sequence[str],
        audience: str,
        issuer: str,
        tenant: str | None = None,
        scopes: Collection[str] = DEFAULT_SCOPES,
        claims: Collection[str] = (),
    ) -> None:
        """`tenant` applies to all tokens; None reads it from the claim `tenant`.

        `scopes` are those of a token that names none in its claim `scope`. `claims` names those that server
        tools find in `current().claims`, as far as a token has them.
        """
        self._keys = keys if isinstance(keys, Mapping) else {"": keys}
        self._has_names = isinstance(keys, Mapping)
        self._algorithms = _checked(algorithms, self._keys)
        if not audience or not issuer:
            raise BadSetting("Web tokens need an audience and an issuer.", hint="Give those of your tokens.")
        self._audience = audience
        self._issuer = issuer
        if tenant is not None and not is_name(tenant):
            raise BadSetting("The tenant must not be empty.", hint="Pass None to read it from each token.")
        self._tenant = tenant
        self._scopes = check_scopes(scopes)
        self._shared = frozenset(claims)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        token = bearer(request)
        if token is None or len(token) > LONGEST_TOKEN:
            return None
        try:
            claims = self._claims(token)
        # the library has no limit for nested JSON but the stack
        except (jwt.PyJWTError, KeyError, ValueError, TypeError, RecursionError) as error:
            # never log what was sent
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
        shared = {name: claims[name] for name in self._shared if name in claims}
        scope = claims.get("scope")
        if scope is None:
            return Principal(tenant, subject, self._scopes, shared)
        named = scope.split() if isinstance(scope, str) else scope
        if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
            return None
        # a token may have scopes of other services
        return Principal(tenant, subject, SCOPES.intersection(named), shared)


def _check_keys(algorithms: Sequence[str], keys: Mapping[str, str | bytes]) -> None:
    """`BadSetting` for a configuration that would refuse every token."""
    if not keys:
        raise BadSetting("No keys are given for web tokens.", hint="Pass one key, or several by their kid.")
    for name, key in keys.items():
        if not any(_takes(algorithm, key) for algorithm in algorithms):
            which = f"The key '{name}'" if name else "The key"
            raise BadSetting(
                f"{which} does not fit {', '.join(algorithms)}.", hint="Public keys must be in PEM format."
            )


def _takes(algorithm: str, key: str | bytes) -> bool:
    try:
        jwt.get_algorithm_by_name(algorithm).prepare_key(key)
    # what the library raises depends on the key
    except Exception:  # noqa: BLE001
        return False
    return True


def _checked(algorithms: Sequence[str], keys: Mapping[str, str | bytes]) -> list[str]:
    unknown = [name for name in algorithms if name not in ALGORITHMS]
    if unknown or not algorithms or isinstance(algorithms, str):
        raise BadSetting(
            f"These algorithms are not supported for web tokens: {algorithms!r}.",
            hint=f"Choose those your tokens are signed with from {', '.join(sorted(ALGORITHMS))}.",
        )
    if not has_crypto and any(name not in SHARED for name in algorithms):
        raise BadSetting("Public keys need the extra `jwt`.", hint='Install "farhand[jwt]".')
    shared = [name for name in algorithms if name in SHARED]
    if shared and len(shared) < len(algorithms):
        raise BadSetting(
            "Secrets and public keys cannot be mixed.",
            hint="Anyone who has the public key could sign with it as if it were the secret.",
        )
    if shared and any(len(key) < SHORTEST_SECRET for key in keys.values()):
        raise BadSetting(f"A secret has fewer than {SHORTEST_SECRET} bytes.", hint="Use a longer one.")
    _check_keys(algorithms, keys)
    return list(algorithms)
