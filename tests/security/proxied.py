"""An app behind a proxy that signs people in, and the proxies: HAProxy and nginx as Debian has them.

They run in a folder of their own, as nobody, on loopback. Each one signs in whoever sends `X-Test-Login`, and
removes `X-Forwarded-User` from what it is sent, as the documentation asks.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from farhand import Agent, ScriptedModel, create_app
from farhand.auth import ProxyHeader
from tests.postgres import free_port

READY_WITHIN_SEC = 30

app = create_app(
    Agent(ScriptedModel(["Hello."])),
    store="memory:",
    authenticate=ProxyHeader("X-Forwarded-User", peers=["127.0.0.1"], tenant="house"),
)

HAPROXY = """
global
    maxconn 200
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend people
    bind 127.0.0.1:{port}
    http-request del-header X-Forwarded-User
    http-request set-header X-Forwarded-User %[req.hdr(x-test-login)] if {{ req.hdr(x-test-login) -m found }}
    default_backend farhand
backend farhand
    server one 127.0.0.1:{behind}
"""

NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 200; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{behind};
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_buffering off;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-User $http_x_test_login;
        }}
    }}
}}
"""


@asynccontextmanager
async def haproxy(behind: int) -> AsyncIterator[int]:
    async with _running(HAPROXY, behind, "haproxy", "-db", "-f") as port:
        yield port


@asynccontextmanager
async def nginx(behind: int) -> AsyncIterator[int]:
    async with _running(NGINX, behind, "nginx", "-e", "stderr", "-c") as port:
        yield port


@asynccontextmanager
async def _running(configuration: str, behind: int, program: str, *arguments: str) -> AsyncIterator[int]:
    """The port of a proxy that answers."""
    with tempfile.TemporaryDirectory(prefix="farhand-proxy-") as folder:
        port = free_port()
        text = configuration.format(port=port, behind=behind, folder=folder)
        process = _start(program, arguments, Path(folder), text)
        try:
            await asyncio.wait_for(_answers(port, process), READY_WITHIN_SEC)
            yield port
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, READY_WITHIN_SEC)


def _start(
    program: str, arguments: tuple[str, ...], folder: Path, configuration: str
) -> subprocess.Popen[bytes]:
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    assert found, f"{program} is missing: make set-up installs it (Debian: apt install {program})"
    file = folder / "proxy.conf"
    file.write_text(configuration)
    nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    if nobody is not None:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return subprocess.Popen(
        [found, *arguments, str(file)],
        cwd=folder,
        user=nobody.pw_uid if nobody else None,
        group=nobody.pw_gid if nobody else None,
        extra_groups=[] if nobody else None,
    )


async def _answers(port: int, process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None, "the proxy ended at once; its reason is above"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
