"""Verifies JSON Web Tokens of an identity provider. The only module that imports PyJWT.

The program that uses this hook chooses the algorithms, never the token: one with the algorithm `none`, or
signed with a public key as if it were a secret, is refused. A token must name this server as its audience and
must expire.
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

        `scopes` applies to a token without a claim `scope`. `claims` names the claims that server tools find
        in `current().claims`, if the token has them.
        """
        self._keys = keys if isinstance(keys, Mapping) else {"": keys}
        self._has_names = isinstance(keys, Mapping)
        self._algorithms = _check_algorithms(algorithms, self._keys)
        if not audience or not issuer:
            raise BadSetting(
                "`audience` and `issuer` must not be empty.", hint="Use the values in your tokens."
            )
        self._audience = audience
        self._issuer = issuer
        if tenant is not None and not is_name(tenant):
            raise BadSetting(
                "`tenant` must be a printable name.", hint="Pass None to read it from each token."
            )
        self._tenant = tenant
        self._scopes = check_scopes(scopes)
        self._shared = frozenset(claims)

    def __call__(self, request: HTTPConnection) -> Principal | None:
        token = bearer(request)
        if token is None or len(token) > LONGEST_TOKEN:
            return None
        try:
            claims = self._claims(token)
        # the library limits nested JSON only by the stack
        except (jwt.PyJWTError, KeyError, ValueError, TypeError, RecursionError) as error:
            # never log what was sent
            log.info("web token refused: %s", type(error).__name__)
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
    """Raises `BadSetting` for a configuration that would refuse every token."""
    if not keys:
        raise BadSetting("`keys` must not be empty.", hint="Pass one key, or several by their `kid`.")
    for name, key in keys.items():
        if not any(_accepts(algorithm, key) for algorithm in algorithms):
            which = f"The key '{name}'" if name else "The key"
            raise BadSetting(
                f"{which} cannot be used with {', '.join(algorithms)}.",
                hint="Public keys must be in PEM format.",
            )


def _accepts(algorithm: str, key: str | bytes) -> bool:
    try:
        jwt.get_algorithm_by_name(algorithm).prepare_key(key)
    # what the library raises depends on the key
    except Exception:  # noqa: BLE001
        return False
    return True


def _check_algorithms(algorithms: Sequence[str], keys: Mapping[str, str | bytes]) -> list[str]:
    unknown = [name for name in algorithms if name not in ALGORITHMS]
    if unknown or not algorithms or isinstance(algorithms, str):
        raise BadSetting(
            f"`algorithms` must list supported algorithms, not {algorithms!r}.",
            hint=f"Name those that sign your tokens: {', '.join(sorted(ALGORITHMS))}.",
        )
    if not has_crypto and any(name not in SHARED for name in algorithms):
        raise not_installed("Public keys", "jwt")
    shared = [name for name in algorithms if name in SHARED]
    if shared and len(shared) < len(algorithms):
        raise BadSetting(
            "Secrets and public keys cannot be mixed.",
            hint="Anyone who has the public key could sign with it as if it were the secret.",
        )
    if shared and any(len(key) < SHORTEST_SECRET for key in keys.values()):
        raise BadSetting("A secret in `keys` is too short.", hint=f"Use {SHORTEST_SECRET} bytes or more.")
    _check_keys(algorithms, keys)
    return list(algorithms)
