"""The recipe of `@farhand/react`'s README, in a new Vite app with the packed packages, with React 18 and 19.

What the app installs from the registry is kept in .cache, so that only the first run downloads it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.axe import findings
from tests.browser.doc_pages import printed
from tests.browser.test_other_origin import open_page, site
from tests.process import ROOT, farhand_process
from tests.requirement import requirement

TS = ROOT / "ts"
PACKAGES = ("protocol", "client", "react")
TOOLS = json.loads((TS / "apps/web/package.json").read_text())["devDependencies"]
INSTALL_WITHIN_SEC = 300.0
BUILD_WITHIN_SEC = 120.0

# what `npm create vite -- --template react-ts` writes, as far as it counts here
FILES = {
    "index.html": """<!doctype html><html lang="en"><head><title>my-chat</title></head><body>
<div id="root"></div><script type="module" src="/src/main.tsx"></script></body></html>""",
    "src/main.tsx": """import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import App from "./App.tsx";

createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
""",
    "src/vite-env.d.ts": '/// <reference types="vite/client" />\n',
    "vite.config.ts": """import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({ plugins: [react()] });
""",
    "tsconfig.json": json.dumps(
        {
            "compilerOptions": {
                "target": "ES2022",
                "lib": ["ES2023", "DOM", "DOM.Iterable"],
                "module": "ESNext",
                "moduleResolution": "bundler",
                "allowImportingTsExtensions": True,
                "noEmit": True,
                "jsx": "react-jsx",
                "strict": True,
                "types": ["vite/client"],
            },
            "include": ["src"],
        }
    ),
}


@pytest.fixture(scope="module")
async def tarballs() -> AsyncIterator[list[Path]]:
    with tempfile.TemporaryDirectory(prefix="farhand-packed-") as folder:
        await run(TS / "node_modules/.bin/tsdown", "--logLevel", "error", cwd=TS)
        for name in PACKAGES:
            await run("npm", "pack", "--loglevel=error", TS / "packages" / name, cwd=Path(folder))
        yield packed_in(Path(folder))


def packed_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tgz"))


@requirement("cards:recipe")
@pytest.mark.tools
@pytest.mark.timeout(600)
@pytest.mark.parametrize("react", ["18.3.1", "19.3.1"])
async def test_the_recipe_of_the_readme_works_in_a_new_app(
    browser: Browser, tarballs: list[Path], tmp_path: Path, react: str
) -> None:
    [recipe] = [
        block.code for block in printed() if block.source.endswith("react/README.md") and block.number == 0
    ]
    draft = tmp_path / "scratch/old-draft.txt"
    draft.parent.mkdir()
    draft.write_text("Dear all,")
    with site(tmp_path / "app/dist") as origin:
        env = {"FARHAND_DEMO_FOLDER": str(draft.parent)}
        async with farhand_process("demo", "--allow-origin", origin, env=env) as server:
            code = recipe.replace("http://127.0.0.1:8787", server.url)
            code = code.replace("choose-16-or-more-characters", server.token)
            await build(tmp_path / "app", react, tarballs, code)
            async with open_page(browser, f"{origin}/index.html") as page:
                await page.get_by_role("textbox", name="Message").fill("Ask me my name")
                await page.get_by_role("button", name="Send message").click()
                card = page.get_by_role("group", name="What is your name?")
                await expect(card).to_be_visible()
                # the app around it is white, whatever the system is
                await page.emulate_media(color_scheme="dark")
                assert await findings(page, ".fh-thread") == []
                await card.get_by_role("textbox").fill("Ada")
                await card.get_by_role("button", name="Send answer").click()
                await expect(page.get_by_text("Nice to meet you, Ada.")).to_be_visible()
                await expect(card).to_have_count(0)
                await allows_nothing_by_accident(page)
                assert draft.exists()
                await page.get_by_role("textbox", name="Message").fill("Delete the file old-draft.txt")
                await page.get_by_role("button", name="Send message").click()
                allow = page.get_by_role("button", name="Allow once")
                # what a person cannot see cannot be pressed
                await allow.scroll_into_view_if_needed()
                await allow.click()
                await expect(page.get_by_text("old-draft.txt is gone").first).to_be_visible()
                assert not draft.exists()


async def allows_nothing_by_accident(page: Page) -> None:
    """Enter pressed again, Enter held down, and a sentence with the letters of the buttons."""
    box = page.get_by_role("textbox", name="Message")
    await box.fill("Delete the file old-draft.txt")
    await box.press("Enter")
    await page.keyboard.press("Enter")
    allow = page.get_by_role("button", name="Allow once")
    await expect(allow).to_be_enabled()
    await expect(box).to_be_focused()
    for _ in range(30):
        await page.keyboard.down("Enter")
    await page.keyboard.up("Enter")
    await page.keyboard.type("and then delete all of it, a and d")
    await allow.evaluate("button => button.click()")
    # it can be denied, and that is its end: so nothing had been allowed
    await page.get_by_role("button", name="Deny").click()
    await page.get_by_role("button", name="Deny").click()
    await expect(page.get_by_text("Denied", exact=True)).to_be_visible()
    await box.fill("")


async def build(app: Path, react: str, tarballs: list[Path], code: str) -> None:
    for name, text in {**FILES, "src/App.tsx": code}.items():
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text(text)
    # links to the same files: there are thousands of them
    shutil.copytree(await installed(react), app, symlinks=True, dirs_exist_ok=True, copy_function=link)
    # each under its own name, as an installation of the tarball leaves it
    for tarball in tarballs:
        place = app / "node_modules/@farhand" / tarball.name.removeprefix("farhand-").rsplit("-", 1)[0]
        place.mkdir(parents=True)
        await run("tar", "-xzf", tarball, "-C", place, "--strip-components=1", cwd=app)
    await run("node_modules/.bin/tsc", "--noEmit", cwd=app)
    await run("node_modules/.bin/vite", "build", "--logLevel", "error", cwd=app)


def link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        # the folders are on different disks
        shutil.copy2(source, target)


async def installed(react: str) -> Path:
    """A folder with everything that the app and the packages need from the registry, and nothing of ours."""
    major = react.partition(".")[0]
    wanted = {
        "react": react,
        "react-dom": react,
        "@types/react": f"^{major}",
        "@types/react-dom": f"^{major}",
        **{name: TOOLS[name] for name in ("vite", "@vitejs/plugin-react")},
        "typescript": json.loads((TS / "package.json").read_text())["devDependencies"]["typescript"],
    }
    for name in PACKAGES:
        manifest = json.loads((TS / "packages" / name / "package.json").read_text())
        wanted |= {
            each: version
            for each, version in manifest.get("dependencies", {}).items()
            if "@farhand/" not in each
        }
    text = json.dumps({"name": "my-chat", "private": True, "type": "module", "dependencies": wanted})
    kept = ROOT / ".cache" / f"fresh-app-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            place = Path(folder) / "app"
            place.mkdir()
            (place / "package.json").write_text(text)
            flags = ("--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline")
            await run("npm", "install", *flags, cwd=place, within=INSTALL_WITHIN_SEC)
            # two tests at once may both have installed it: the first one stays
            if not kept.exists():
                place.rename(kept)
    return kept


async def run(*command: str | Path, cwd: Path, within: float = BUILD_WITHIN_SEC) -> None:
    process = await asyncio.create_subprocess_exec(
        *map(str, command), cwd=cwd, env={**os.environ, "NODE_ENV": ""}, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        out, _ = await asyncio.wait_for(process.communicate(), within)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, f"{command[0]}: {out.decode()}"
