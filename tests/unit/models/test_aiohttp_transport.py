"""The transport under the libraries of the providers, against servers that send exact bytes."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from farhand.models import aiohttp_transport
from farhand.models.aiohttp_transport import AiohttpTransport

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
TIMEOUT_SEC = 30.0


@asynccontextmanager
async def serving(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    async with server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield f"{'https' if tls else 'http'}://{host}/v1"


def replies(raw: bytes, heads: list[bytes] | None = None) -> Serve:
    """Sends these bytes for every request; the heads of the requests are added to the list."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            if heads is not None:
                heads.append(head)
            writer.write(raw)
            await writer.drain()

    return serve


def cuts(raw: bytes) -> Serve:
    """Sends these bytes for a request and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)

    return serve


@asynccontextmanager
async def connected_client(timeout_sec: float = TIMEOUT_SEC) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=AiohttpTransport(), timeout=timeout_sec) as client:
        yield client


async def test_a_response_has_the_status_headers_and_body_that_were_sent() -> None:
    raw = b"HTTP/1.1 429 Too Many\r\nretry-after: 3\r\nset-cookie: a=1\r\ncontent-length: 4\r\n\r\nbusy"
    heads: list[bytes] = []
    async with serving(replies(raw, heads)) as url, connected_client() as client:
        response = await client.post(f"{url}/a%2Fb?q=%20", json={}, headers={"x-key": "k"})
    assert (response.status_code, response.text) == (429, "busy")
    assert (response.headers["retry-after"], response.cookies["a"]) == ("3", "1")
    assert heads[0].startswith(b"POST /v1/a%2Fb?q=%20 HTTP/1.1\r\n")
    assert b"x-key: k\r\n" in heads[0]


async def test_headers_are_those_of_the_client_alone() -> None:
    """Two user agents or encodings would be an invalid request."""
    heads: list[bytes] = []
    async with serving(replies(ANSWER, heads)) as url, connected_client() as client:
        await client.post(url, content=b"{}", headers={"user-agent": "ours", "accept": "text/event-stream"})
        sent = sorted(client.headers.keys() | {"host", "content-length"})
    names = [line.partition(b":")[0].decode().lower() for line in heads[0].strip().split(b"\r\n")[1:]]
    assert sorted(names) == sent


async def test_a_compressed_body_is_decompressed_once() -> None:
    body = gzip.compress(b"hello")
    raw = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    async with serving(replies(raw)) as url, connected_client() as client:
        assert (await client.post(url, json={})).text == "hello"


async def test_long_and_numerous_headers_are_accepted() -> None:
    """Gateways add many, such as a policy or a copy of every header of the provider behind them."""
    long = b"x-long: %b\r\n" % (b"a" * 60_000)
    many = b"".join(b"x-%d: y\r\n" % number for number in range(500))
    raw = b"HTTP/1.1 200 OK\r\n" + long + many + b"content-length: 2\r\n\r\nhi"
    async with serving(replies(raw)) as url, connected_client() as client:
        assert len((await client.post(url, json={})).headers) == 502


async def test_credentials_in_the_address_are_sent_as_a_header() -> None:
    heads: list[bytes] = []
    async with serving(replies(ANSWER, heads)) as url, connected_client() as client:
        await client.post(url.replace("//", "//me:secret@"), json={}, headers={"authorization": "Bearer k"})
    assert heads[0].lower().count(b"authorization:") == 1
    assert b"authorization: basic bwu6c2vjcmv0" in heads[0].lower()


async def test_a_connection_serves_the_next_request_and_no_cookie_is_kept_below_the_client() -> None:
    heads: list[bytes] = []
    connections = 0
    reply = replies(b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\ncontent-length: 2\r\n\r\nhi", heads)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reply(reader, writer)

    async with serving(serve) as url, connected_client() as client:
        for _ in range(3):
            await client.post(url, json={})
            client.cookies.clear()
    assert connections == 1
    assert b"cookie" not in heads[2].lower()


async def test_what_has_arrived_is_read_without_waiting_for_more() -> None:
    answered = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n")
        await answered.wait()
        writer.write(b"5\r\nthree\r\n0\r\n\r\n")

    async with serving(serve) as url, connected_client() as client, client.stream("POST", url) as response:
        chunks = response.aiter_bytes()
        first = b""
        while first != b"onetwo":
            first += await anext(chunks)
        answered.set()
        assert [chunk async for chunk in chunks] == [b"three"]


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"HELLO\r\n\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", httpx2.RemoteProtocolError),
        (CHUNKED + b"5\r\nabc", httpx2.RemoteProtocolError),
        (CHUNKED + b"zz\r\nabc", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", httpx2.RemoteProtocolError),
    ],
    ids=["closed", "not HTTP", "bad header", "cut chunk", "bad chunk", "cut body"],
)
async def test_what_is_not_a_whole_response_is_an_error_of_the_client(
    raw: bytes, error: type[Exception]
) -> None:
    async with serving(cuts(raw)) as url, connected_client() as client:
        with pytest.raises(error):
            await client.post(url, json={})


async def test_a_chunk_that_is_garbled_in_mid_answer_is_an_error_of_the_client() -> None:
    read = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"3\r\none\r\n")
        await read.wait()
        writer.write(b"zz\r\n")

    async with serving(serve) as url, connected_client() as client, client.stream("POST", url) as response:
        chunks = response.aiter_bytes()
        assert await anext(chunks) == b"one"
        read.set()
        with pytest.raises(httpx2.RemoteProtocolError):
            await anext(chunks)


async def test_a_long_pause_between_two_words_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiohttp_transport, "WATCH_SEC", 0.001)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for word in (b"one", b"two", b"six"):
            writer.write(CHUNKED * (word == b"one") + b"3\r\n%b\r\n" % word)
            # many times as long as the connection is left unwatched
            await asyncio.sleep(0.05)
        writer.write(b"0\r\n\r\n")

    async with serving(serve) as url, connected_client() as client:
        assert (await client.post(url)).text == "onetwosix"


async def test_a_server_that_is_not_there_is_an_error_of_the_connection() -> None:
    async with serving(replies(ANSWER)) as url:
        pass
    async with connected_client() as client:
        with pytest.raises(httpx2.ConnectError):
            await client.post(url, json={})


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def test_a_handshake_that_never_ends_is_an_error_of_the_connection() -> None:
    async with serving(silent) as url, connected_client(0.2) as client:
        with pytest.raises(httpx2.ConnectTimeout):
            await client.post(url.replace("http:", "https:"), json={})


async def test_a_silent_server_is_an_error_of_reading() -> None:
    async with serving(silent) as url, connected_client(0.2) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.post(url, json={})


async def test_a_server_that_stops_reading_is_not_waited_for() -> None:
    left = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await left.wait()

    async with serving(deaf) as url, connected_client(0.2) as client:
        with pytest.raises(httpx2.WriteTimeout):
            await client.post(url, content=bytes(50_000_000))
        left.set()


async def test_a_response_that_is_left_early_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"3\r\none\r\n")
        await reader.read()
        closed.set()

    async with serving(endless) as url, connected_client() as client:
        async with client.stream("POST", url) as response:
            assert await anext(response.aiter_bytes()) == b"one"
        await closed.wait()


async def test_a_closed_transport_can_be_closed_again_and_used_again() -> None:
    transport = AiohttpTransport()
    await transport.aclose()
    async with serving(replies(ANSWER)) as url:
        for _ in range(2):
            request = httpx2.Request("POST", url, json={}, extensions={"timeout": _timeouts()})
            response = await transport.handle_async_request(request)
            assert await response.aread() == b"hi"
            await transport.aclose()


def _timeouts() -> dict[str, float | None]:
    return httpx2.Timeout(TIMEOUT_SEC).as_dict()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 that nobody knows, and the context of a server that has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, key_file = tmp_path / "certificate.pem", tmp_path / "key.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key_file)
    return file, context


async def test_a_certificate_that_nobody_signed_is_refused(
    certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    async with serving(replies(ANSWER), certificate[1]) as url, connected_client() as client:
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            await client.post(url, json={})


async def test_certificates_named_in_the_environment_are_trusted(
    certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with serving(replies(ANSWER), certificate[1]) as url, connected_client() as client:
        assert (await client.post(url, json={})).text == "hi"
