"""Runs axe-core's accessibility checks on the current page."""

from __future__ import annotations

from functools import cache
from typing import Any

from playwright.async_api import Page

from tests.process import ROOT

SOURCE = ROOT / "ts/node_modules/axe-core/axe.min.js"


async def findings(page: Page, within: str = "html") -> list[str]:
    """Every finding, a minor one too, in one line: the rule, what it wants, and where."""
    return [_line(each) for each in await _violations(page, within)]


async def _violations(page: Page, within: str) -> list[dict[str, Any]]:
    # past the page's own policy, which lets no script in from elsewhere
    session = await page.context.new_cdp_session(page)
    await session.send("Runtime.evaluate", {"expression": _axe()})
    options = {"resultTypes": ["violations"], "iframes": False}
    found = await page.evaluate("(given) => axe.run(...given)", [within, options])
    assert found["passes"], "axe has looked at nothing"
    violations: list[dict[str, Any]] = found["violations"]
    return violations


@cache
def _axe() -> str:
    assert SOURCE.exists(), "axe-core is missing; `make test` installs it (cd ts && npm install)"
    return SOURCE.read_text(encoding="utf-8")


def _line(finding: dict[str, Any]) -> str:
    places = [node["html"][:120] for node in finding["nodes"][:3]]
    return f"{finding['impact']} {finding['id']}: {finding['help']}; at {places}"
