"""Runs axe-core's accessibility checks on the current page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from playwright.async_api import Page

from tests.process import ROOT

SOURCE = ROOT / "ts/node_modules/axe-core/axe.min.js"
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules that a change from light to dark can break; the others read what stays the same."""


async def findings(page: Page, within: str = "html", *, rules: Sequence[str] = ()) -> list[str]:
    """Every finding, a minor one too, in one line: the rule, what it wants, and where. Of all rules, unless
    some are named."""
    return [_line(each) for each in await _violations(page, within, rules)]


async def _violations(page: Page, within: str, rules: Sequence[str]) -> list[dict[str, Any]]:
    # a page that was looked at before still has it
    if not await page.evaluate("'axe' in window"):
        # past the page's own policy, which lets no script in from elsewhere
        session = await page.context.new_cdp_session(page)
        await session.send("Runtime.evaluate", {"expression": _axe()})
        await session.detach()
    options: dict[str, object] = {"resultTypes": ["violations"], "iframes": False}
    if rules:
        options["runOnly"] = list(rules)
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
