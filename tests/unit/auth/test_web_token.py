"""JSON Web Tokens: which ones count."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.requests import HTTPConnection

from farhand.auth import WebToken
from farhand.core.principal import Principal
from farhand.errors import BadSetting
from tests.requirement import requirement
from tests.unit.server.asgi_requests import visit

SECRET = "s" * 40
_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PRIVATE = _KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
PUBLIC = (
    _KEY.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


# Any: claims of any kind, wrong ones too
def claims(**more: Any) -> dict[str, Any]:
    given = {"sub": "ada", "aud": "farhand", "iss": "https://id.example", "exp": int(time.time()) + 60}
    return {name: value for name, value in {**given, **more}.items() if value is not None}


def hook(algorithms: tuple[str, ...] = ("HS256",), keys: Any = SECRET, **more: Any) -> WebToken:
    options = {"audience": "farhand", "issuer": "https://id.example", "tenant": "house", **more}
    return WebToken(keys, algorithms=algorithms, **options)


def asking(token: str) -> HTTPConnection:
    return HTTPConnection(visit({"authorization": f"Bearer {token}"}))


def signed(key: Any = SECRET, algorithm: str = "HS256", headers: Any = None, **more: Any) -> str:
    return jwt.encode(claims(**more), key, algorithm=algorithm, headers=headers)


def raw(head: object, body: object, signature: str = "") -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in (head, body)
    ]
    return ".".join([*parts, signature])


@requirement("auth:web-token")
def test_a_signed_token_says_who_asks() -> None:
    person = frozenset({"chat", "answer", "approve"})
    assert hook()(asking(signed())) == Principal("house", "ada", person)
    assert hook(("RS256",), PUBLIC)(asking(signed(PRIVATE, "RS256"))) == Principal("house", "ada", person)
    assert hook(tenant=None)(asking(signed(tenant="acme"))) == Principal("acme", "ada", person)


@requirement("auth:web-token")
@pytest.mark.parametrize(
    ("scope", "may"),
    [("chat execute", {"chat", "execute"}), (["client"], {"client"}), ("root mail:read", set())],
)
def test_a_token_may_what_it_names_of_what_there_is(scope: object, may: set[str]) -> None:
    found = hook()(asking(signed(scope=scope)))
    assert found is not None
    assert found.scopes == may


@requirement("auth:web-token")
@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "another"}, {"aud": None}, {"iss": "https://evil.example"}, {"iss": None},
        {"exp": 1}, {"exp": None}, {"exp": "soon"}, {"nbf": 99999999999}, {"sub": None},
        {"sub": 7}, {"sub": ""}, {"sub": "a\nb"}, {"sub": "x" * 300}, {"scope": 7}, {"scope": [7]},
    ],
    ids=repr,
)  # fmt: skip
def test_a_token_for_somebody_else_or_without_an_end_is_nobody(wrong: dict[str, Any]) -> None:
    token = raw_signed(claims(**wrong))
    assert hook()(asking(token)) is None


def raw_signed(body: dict[str, Any]) -> str:
    """Signed whatever it says: the library refuses to make some of them."""
    unsigned = raw({"alg": "HS256", "typ": "JWT"}, body).rstrip(".")
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    made = signature.sign(unsigned.encode(), SECRET.encode())
    return f"{unsigned}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


@requirement("auth:web-token")
def test_what_the_token_says_of_its_algorithm_is_not_believed() -> None:
    assert hook()(asking(raw({"alg": "none"}, claims()))) is None
    assert hook()(asking(raw({"alg": "None"}, claims()))) is None
    assert hook(("HS512",))(asking(signed())) is None
    # the public key as the secret: it is known to everybody
    unsigned = raw({"alg": "HS256"}, claims()).rstrip(".")
    made = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        unsigned.encode(), PUBLIC.encode()
    )
    confused = f"{unsigned}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"
    assert hook(("RS256",), PUBLIC)(asking(confused)) is None


@requirement("auth:web-token")
def test_another_key_or_an_unknown_name_of_a_key_is_nobody() -> None:
    two = {"old": SECRET, "new": "n" * 40}
    assert hook()(asking(signed("x" * 40))) is None
    assert hook(keys=two)(asking(signed("n" * 40, headers={"kid": "new"}))) is not None
    assert hook(keys=two)(asking(signed("n" * 40, headers={"kid": "old"}))) is None
    assert hook(keys=two)(asking(signed("n" * 40, headers={"kid": "../../dev/null"}))) is None
    assert hook(keys=two)(asking(signed("n" * 40))) is None
    other = ec.generate_private_key(ec.SECP256R1())
    assert hook(("RS256",), PUBLIC)(asking(jwt.encode(claims(), other, algorithm="ES256"))) is None


@requirement("auth:web-token")
@pytest.mark.parametrize(
    "token", ["", ".", "..", "a.b.c", "é.é.é", "x" * 20_000, "[" * 9_000, raw([], []), raw({"alg": []}, {})]
)
def test_what_is_no_token_is_nobody_and_never_breaks(token: str) -> None:
    assert hook()(asking(token)) is None


@requirement("auth:web-token")
def test_a_head_nested_very_deeply_is_nobody() -> None:
    deep = base64.urlsafe_b64encode(b'{"alg":' + b"[" * 5_000).rstrip(b"=").decode()
    assert hook()(asking(f"{deep}.e30.")) is None


@requirement("auth:web-token")
@pytest.mark.parametrize(
    ("algorithms", "keys"),
    [
        ((), SECRET), (("none",), SECRET), (("HS256", "none"), SECRET), (("HS256", "RS256"), PUBLIC),
        (("HS256",), "short"), ("HS256", SECRET),
    ],
)  # fmt: skip
def test_a_hook_that_would_believe_anybody_cannot_be_made(algorithms: Any, keys: str) -> None:
    with pytest.raises(BadSetting):
        hook(algorithms, keys)


@requirement("auth:web-token")
@pytest.mark.parametrize(
    ("algorithms", "keys"),
    [
        (("RS256",), "not a pem"), (("RS256",), {}), (("HS256",), {}), (("ES256",), PUBLIC),
        (("RS256",), {"a": PUBLIC, "b": "not a pem"}), (("EdDSA",), b""),
    ],
)  # fmt: skip
def test_a_hook_that_could_let_nobody_in_cannot_be_made(algorithms: Any, keys: Any) -> None:
    with pytest.raises(BadSetting):
        hook(algorithms, keys)


@requirement("auth:web-token")
@pytest.mark.parametrize("empty", ["audience", "issuer", "tenant"])
def test_a_hook_without_a_word_that_it_needs_cannot_be_made(empty: str) -> None:
    words = {"audience": "a", "issuer": "i", "tenant": "t", empty: ""}
    with pytest.raises(BadSetting):
        WebToken(SECRET, algorithms=["HS256"], **words)
