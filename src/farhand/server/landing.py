"""The pages that the server writes itself: the plain one at `/`, which says what this server is and how to
try it with curl, and the small ones of `notices.py`. Pure: facts in, HTML out.

They run no script and load nothing but a logo. Must never receive the token, since strangers can open them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple

from farhand.core.tool import Executor, Tool
from farhand.wire.http import Header


class Facts(NamedTuple):
    """What the page shows. `tools` is None for a visitor who is not signed in."""

    address: str
    notice: str
    needs_token: bool
    has_hook: bool
    tools: Sequence[Tool] | None
    home: str = "/"
    """Where the token is sent: the path that exchanges it for a cookie."""
    example: tuple[str, dict[str, object]] = ("Hello", {"ok": True})
    """A message that makes the model call a frontend tool, and an output for that call."""
    chat_id: str = "first-chat"
    """A new one each time: repeating a message returns its earlier answer."""


def landing(facts: Facts) -> bytes:
    commands = {name: escape(text, quote=False) for name, text in _commands(facts).items()}
    return _PAGE.substitute(
        style=_STYLE,
        notice=escape(facts.notice, quote=False),
        form=_form(facts),
        tools=_tools(facts.tools),
        credential=_credential(facts),
        sign_in=f"<pre><code>{escape(_SIGN_IN)}</code></pre>" if facts.needs_token else "",
        **commands,
    ).encode()


class Brand(NamedTuple):
    title: str
    logo: str = ""
    """Its path on this server; without one, farhand's own mark is shown."""


class Notice(NamedTuple):
    """The content of a small page, and its only action."""

    brand: Brand
    heading: str
    text: str
    problem: str = ""
    link: tuple[str, str] | None = None
    """The address and the text of the link."""
    form: tuple[str, str, str] | None = None
    """The path that takes the token, and the texts of the field and of the button."""


def notice_page(notice: Notice) -> bytes:
    logo = notice.brand.logo
    return _NOTICE.substitute(
        style=_STYLE,
        brand=escape(notice.brand.title, quote=False),
        icon=f'<link rel="icon" href="{escape(logo)}">\n' if logo else "",
        mark=f'<img src="{escape(logo)}" alt="">' if logo else _MARK,
        heading=escape(notice.heading, quote=False),
        text=escape(notice.text, quote=False),
        problem=f'<p class="notice" role="alert">{escape(notice.problem)}</p>' if notice.problem else "",
        action=_action(notice),
    ).encode()


def _action(notice: Notice) -> str:
    if notice.form is not None:
        return _token_form(*notice.form)
    if notice.link is None:
        return ""
    address, words = notice.link
    return f'<a class="action" href="{escape(address)}">{escape(words, quote=False)}</a>'


_FOLDER = files("farhand.server")
_NOTICE = Template((_FOLDER / "notice.html").read_text(encoding="utf-8"))
_MARK = (_FOLDER / "mark.svg").read_text(encoding="utf-8").strip()
_PAGE = Template((_FOLDER / "landing.html").read_text(encoding="utf-8"))
_STYLE = (_FOLDER / "landing.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

PAGE_HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    # the address may contain the token
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
NOTICE_HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", f"{_POLICY}; img-src 'self'".encode()),
    *PAGE_HEADERS[1:],
)

_WHERE = {
    Executor.SERVER: "on the server",
    Executor.FRONTEND: "in the browser",
    Executor.CLIENT: "in a program",
}
_SIGN_IN = "export FARHAND_TOKEN='the value of ?token= in the address printed at start'"


def _form(facts: Facts) -> str:
    """Does what the printed address does, for a visitor who has the token only."""
    if not facts.needs_token or facts.tools is not None:
        return ""
    return _token_form(facts.home, "Token", "Sign in")


def _token_form(home: str, label: str, button: str) -> str:
    return (
        f'<form method="get" action="{escape(home)}"><label>{escape(label)}'
        '<input name="token" type="password" autocomplete="off" spellcheck="false" required></label>'
        f'<button type="submit">{escape(button)}</button></form>'
    )


def _credential(facts: Facts) -> str:
    if facts.has_hook:
        return (
            "This server uses its own sign-in. Send the credential it asks for with every request; "
            "the commands below leave it out."
        )
    if not facts.needs_token:
        return "This server was started with <code>--open</code>: programs on this machine need no token."
    return (
        "Programs send the token of this server as <code>Authorization: Bearer</code>. "
        "It is printed in the terminal at start."
    )


def example_for(tools: Sequence[Tool]) -> tuple[str, dict[str, object]]:
    """A message that makes the model call a frontend tool, if it has one, and an output for that call."""
    names = [tool.name for tool in tools if tool.executor is Executor.FRONTEND]
    if "open_url" in names:
        return "Open https://example.com", {"url": "https://example.com", "viewKey": "v1"}
    return (f"Please use {names[0]}." if names else "Hello"), {"ok": True}


def _commands(facts: Facts) -> dict[str, str]:
    words, output = facts.example
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": words}]}
    chat = {"id": facts.chat_id, "wait": "hold", "messages": [message]}
    ack = {"toolCallId": "call_...", "status": "success", "output": output}
    result = {"tool_use_id": "call_...", "content": json.dumps(output, separators=(",", ":"))}
    results = {"agent_uuid": "...", "tool_results": [result]}
    return {
        "chat": _curl(facts, "/api/chat", chat),
        "ack": _curl(facts, "/api/tools/ack", ack),
        "run": _curl(facts, "/agent/run", {"user_prompt": words}),
        "results": _curl(facts, "/agent/tool_results", results),
    }


def _curl(facts: Facts, path: str, body: Mapping[str, object]) -> str:
    sign_in = ' -H "Authorization: Bearer $FARHAND_TOKEN"' if facts.needs_token else ""
    return (
        f"curl -N {facts.address}{path}{sign_in} \\\n"
        f"  -H 'Content-Type: application/json' \\\n"
        f"  -d '{json.dumps(body, separators=(',', ':'))}'"
    )


def _tools(tools: Sequence[Tool] | None) -> str:
    if tools is None:
        return ""
    if not tools:
        return "<h2>Its tools</h2><p>It has none.</p>"
    rows = "".join(_row(tool) for tool in tools)
    head = "<tr><th>Tool</th><th>Runs</th><th>Does</th></tr>"
    return f"<h2>Its tools</h2><table>{head}{rows}</table>"


def _row(tool: Tool) -> str:
    where = f"{_WHERE[tool.executor]}, with approval" if tool.may_ask else _WHERE[tool.executor]
    does = tool.description.strip().partition("\n")[0]
    return (
        f"<tr><td><code>{escape(tool.name)}</code></td><td>{escape(where)}</td><td>{escape(does)}</td></tr>"
    )
