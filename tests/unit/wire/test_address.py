"""Hosts, queries and paths, parsed or refused."""

from __future__ import annotations

import pytest

from farhand.errors import Malformed
from farhand.wire.address import Host, base_url, host_of, is_loopback, query, root_path


@pytest.mark.parametrize(
    ("value", "host"),
    [
        (b"localhost", Host("localhost", None)),
        (b"LocalHost.:8000", Host("localhost", 8000)),
        (b"127.0.0.1:65535", Host("127.0.0.1", 65535)),
        (b"[::1]", Host("::1", None)),
        (b"[0:0:0:0:0:0:0:1]:80", Host("::1", 80)),
        (b"my_host-1.example", Host("my_host-1.example", None)),
    ],
)
def test_a_host_is_split_into_name_and_port(value: bytes, host: Host) -> None:
    assert host_of({"headers": [(b"accept", b"*/*"), (b"host", value)]}) == host


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b":80",
        b"a:b",
        b"a:65536",
        b"::1",
        b"[::1",
        b"[::g]",
        b"[:::]",
        b"[1.2.3.4]",
        b"a b",
        b"a/b",
        b"u@a",
        b"a,b",
        b"\xe9",
    ],
)
def test_what_is_no_host_is_none(value: bytes) -> None:
    assert host_of({"headers": [(b"host", value)]}) is None


def test_a_missing_or_doubled_host_is_none() -> None:
    assert host_of({"headers": []}) is None
    assert host_of({"headers": [(b"host", b"localhost"), (b"host", b"localhost")]}) is None


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.8.9.1", "::1", "[::1]", "::ffff:127.0.0.1"],
)
def test_this_machine_is_local(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",
        "::",
        "192.168.0.1",
        "::ffff:10.0.0.1",
        "localhost.example.com",
        "127.0.0.1.nip.io",
        "127.1",
        "2130706433",
    ],
)
def test_everything_else_is_not_local(host: str) -> None:
    assert not is_loopback(host)


def test_a_query_is_read_as_text() -> None:
    assert query({"query_string": b""}) == {}
    assert query({"query_string": b"after=3.12&token=a%2Bb+c&empty=&%C3%A9=1"}) == {
        "after": "3.12",
        "token": "a+b c",
        "empty": "",
        "é": "1",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"a=1&a=1", "twice"),
        (b"a=%ff", "cannot be parsed"),
        (b"a=\xff", "cannot be parsed"),
        (b"&".join(b"p%d=1" % number for number in range(65)), "cannot be parsed"),
    ],
)
def test_a_query_that_cannot_be_understood_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        query({"query_string": text})


def test_the_address_of_a_visitor_has_the_path_under_which_a_host_mounts_us() -> None:
    scope = {"scheme": "https", "root_path": "/assistant", "headers": [(b"host", b"example.org:8443")]}
    assert root_path(scope) == "/assistant"
    assert base_url(scope) == "https://example.org:8443/assistant"
    assert root_path({}) == ""
    assert base_url({"headers": [(b"host", b"localhost")]}) == "http://localhost"
