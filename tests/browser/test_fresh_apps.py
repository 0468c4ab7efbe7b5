"""What the READMEs of the packages print, in a new Vite app with the packed packages, with React 18 and 19.

The packages are packed and installed by the commands of the READMEs. What the app installs from the registry
is kept in .cache, so that only the first run downloads it. One app for each version of React has the pages of
all recipes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.axe import findings
from tests.browser.doc_pages import HTML, Block, printed
from tests.browser.test_doc_pages import PAGES, Docs, at_home, elsewhere, fresh_chat
from tests.browser.test_other_origin import open_page, site
from tests.process import ROOT, FarhandProcess, farhand_process
from tests.requirement import requirement

TS = ROOT / "ts"
READMES = {name: TS / "packages" / name / "README.md" for name in ("react", "client", "ai-sdk")}
PACKAGES = ("protocol", *READMES)
VERSIONS = json.loads((TS / "package.json").read_text())["devDependencies"]
TOOLS = json.loads((TS / "apps/web/package.json").read_text())["devDependencies"]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SERVER, TOKEN = "http://127.0.0.1:8787", "choose-16-or-more-characters"
INSTALL_WITHIN_SEC = 300.0
BUILD_WITHIN_SEC = 120.0

# what `npm create vite -- --template react-ts` writes, as far as it counts here
FILES = {
    "index.html": """<!doctype html><html lang="en"><head><title>my-chat</title></head><body>
<div id="root"></div><script type="module" src="/src/main.tsx"></script></body></html>""",
    "src/main.tsx": """import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./index.css";
import App from "./App.tsx";

createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
""",
    # its page is dark if the system is, centred, and styles elements by their names
    "src/index.css": """:root { color-scheme: light dark; --h: #08060d; letter-spacing: 0.18px; }
@media (prefers-color-scheme: dark) { :root { --h: #f3f4f6; } }
body { margin: 0; }
#root { width: 1126px; max-width: 100%; margin: 0 auto; text-align: center; min-height: 100svh; }
h1, h2 { font-family: monospace; font-weight: 500; color: var(--h); }
h2 { font-size: 24px; letter-spacing: -0.24px; margin: 0 0 8px; }
code { display: inline-flex; padding: 4px 8px; color: var(--h); background: tomato; }
""",
    "src/vite-env.d.ts": '/// <reference types="vite/client" />\n',
    # as `farhand types` writes it
    "agent.py": """from farhand import Agent, ScriptedModel, tool
from typing_extensions import TypedDict


class Opened(TypedDict):
    url: str
    viewKey: str


@tool(executor="frontend")
def open_url(url: str) -> Opened:
    \"\"\"Open a page.

    Args:
        url: Its address.
    \"\"\"
    raise NotImplementedError


agent = Agent(ScriptedModel(["Hello."]), tools=[open_url])
""",
    "vite.config.ts": """import react from "@vitejs/plugin-react";
import { readdirSync } from "node:fs";
import { defineConfig } from "vite";

const input = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".html"));
export default defineConfig({ plugins: [react()], base: "./", build: { rolldownOptions: { input } } });
""",
    "tsconfig.json": json.dumps(
        {
            "compilerOptions": {
                "target": "ES2022",
                "lib": ["ES2023", "DOM", "DOM.Iterable"],
                "module": "ESNext",
                "moduleResolution": "bundler",
                "moduleDetection": "force",
                "allowImportingTsExtensions": True,
                "verbatimModuleSyntax": True,
                "noEmit": True,
                "jsx": "react-jsx",
                "strict": True,
                "noUnusedLocals": True,
                "noUnusedParameters": True,
                "erasableSyntaxOnly": True,
                "noUncheckedSideEffectImports": True,
                "skipLibCheck": True,
                "types": ["vite/client"],
            },
            "include": ["src"],
        }
    ),
}

# what each page shows once its button was pressed, if it has one, or as it is
SHOWS = {
    "first": "You said: What is the weather in Oslo?",
    "turns": "Allow",
    "held": "open_url gave {'url': 'https://example.org/report', 'viewKey': 'v1'}.",
    "lasting": "Once upon a time",
    "reloaded": "Once upon a time",
    "cards": "Shall I go on?",
}


class App(NamedTuple):
    """A built app, and the servers that its pages talk to."""

    demo: FarhandProcess
    docs: Docs
    draft: Path


@pytest.fixture(scope="module")
async def packed() -> None:
    """The first command of each README, as printed: it is the same in all of them."""
    [command] = {SHELL.findall(readme.read_text())[0] for readme in READMES.values()}
    await run("bash", "-euc", command, cwd=TS, within=INSTALL_WITHIN_SEC)


@pytest.fixture(scope="module", params=["18.3.1", "19.3.1"])
async def app(
    packed: None, built: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[App]:
    folder, room = tmp_path_factory.mktemp("app") / "my-chat", tmp_path_factory.mktemp("room")
    (room / "gates").mkdir()
    draft = room / "scratch/old-draft.txt"
    draft.parent.mkdir()
    draft.write_text("Dear all,")
    async with AsyncExitStack() as stack:
        origin = stack.enter_context(site(folder / "dist"))
        demo = await stack.enter_async_context(
            farhand_process("demo", "--allow-origin", origin, env={"FARHAND_DEMO_FOLDER": str(draft.parent)})
        )
        server = await stack.enter_async_context(
            farhand_process(
                "tests.browser.doc_agent:agent", "--allow-origin", origin, env={"TEST_ROOM": str(room)}
            )
        )
        await build(folder, request.param, demo, server)
        yield App(demo, Docs(server, origin, room), draft)


@requirement("cards:recipe")
@pytest.mark.tools
@pytest.mark.timeout(600)
async def test_the_recipe_of_the_readme_works_in_a_new_app(browser: Browser, app: App) -> None:
    draft = app.draft
    async with open_page(browser, f"{app.docs.origin}/index.html") as page:
        await page.get_by_role("textbox", name="Message").fill("Ask me my name")
        await page.get_by_role("button", name="Send message").click()
        card = page.get_by_role("group", name="What is your name?")
        await expect(card).to_be_visible()
        await looks_as_it_should(page)
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


@requirement("cards:recipe")
@pytest.mark.tools
@pytest.mark.timeout(600)
async def test_every_recipe_of_the_readmes_is_shown_in_a_new_app(browser: Browser, app: App) -> None:
    blocks = {(block.source, block.number): block for block in printed()}
    for key, (name, main) in PAGES.items():
        for chat in ("report", "story"):
            await fresh_chat(app.docs, chat)
        opened = elsewhere if SERVER in blocks[key].code else at_home
        async with opened(browser, app.docs, f"{name}.html#{name}") as page:
            faults: list[str] = []
            page.on("pageerror", partial(note, faults))
            await page.reload()
            ask = page.get_by_role("button", name="Ask", exact=True)
            if name in SHOWS:
                await ask.click()
                await expect(page.get_by_text(SHOWS[name], exact=True).first).to_be_visible()
            elif "<Shown" in main:
                await expect(page.locator("#root > *")).not_to_have_count(0)
            assert faults == [], name


def note(faults: list[str], error: object) -> None:
    faults.append(str(error))


async def looks_as_it_should(page: Page) -> None:
    """Readable in light and dark, and nothing that the page says of its own elements has come through."""
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        await page.emulate_media(color_scheme=scheme)
        assert await findings(page, ".fh-thread") == []
    card = page.locator(".fh-card")
    style = await card.locator("h2").evaluate("(each) => ({ ...getComputedStyle(each) })")
    around = await card.evaluate("(each) => ({ ...getComputedStyle(each) })")
    for name in ("color", "fontFamily", "letterSpacing", "textAlign"):
        assert style[name] == around[name], name
    assert [around["textAlign"], around["letterSpacing"]] == ["start", "normal"]


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


async def build(folder: Path, react: str, demo: FarhandProcess, server: FarhandProcess) -> None:
    """The app beside the checkout, with a page for each recipe."""
    (folder.parent / "farhand").symlink_to(ROOT)
    files = {**FILES, "package.json": manifest(react)}
    for block in printed():
        text = block.code.replace(SERVER, server.url).replace(TOKEN, server.token)
        key = (block.source, block.number)
        if key in PAGES:
            name, main = PAGES[key]
            files[f"src/{name}.code.{block.kind}"] = text.replace('url: "/farhand"', 'url: ""')
            files[f"pages/{name}.main.tsx"] = main.replace('"./', '"../src/')
            files[f"{name}.html"] = HTML.format(name=f"pages/{name}")
        elif is_first(block):
            files["src/App.tsx"] = block.code.replace(SERVER, demo.url).replace(TOKEN, demo.token)
        elif block.source.endswith("hands-without-our-chat.md"):
            files[f"src/{block.name}.{block.kind}"] = block.code
    # links to the same files: there are thousands of them
    shutil.copytree(await installed(react), folder, symlinks=True, copy_function=link)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # not through a link
        path.unlink(missing_ok=True)
        path.write_text(text)
    await run(sys.executable, "-m", "farhand", "types", "agent:agent", "-o", "src/tools.ts", cwd=folder)
    for readme in READMES.values():
        await run(*install_command(readme), cwd=folder, within=INSTALL_WITHIN_SEC)
    await run("node_modules/.bin/tsc", "--noEmit", cwd=folder)
    await run("node_modules/.bin/vite", "build", "--logLevel", "error", cwd=folder)


def is_first(block: Block) -> bool:
    return block.source.endswith("react/README.md") and block.number == 0


def install_command(readme: Path) -> list[str]:
    """As printed, but for the versions of other packages: those are the ones that the app has."""
    [command] = [
        line for block in SHELL.findall(readme.read_text()) for line in block.splitlines() if ".tgz" in line
    ]
    words = [word for word in shlex.split(command) if word in ("npm", "install") or word.endswith(".tgz")]
    return [*words, "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"]


def link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        # the folders are on different disks
        shutil.copy2(source, target)


def manifest(react: str) -> str:
    """The app's, without the packages of ours."""
    major = react.partition(".")[0]
    wanted = {
        "react": react,
        "react-dom": react,
        "@types/react": f"^{major}",
        "@types/react-dom": f"^{major}",
        **{name: TOOLS[name] for name in ("vite", "@vitejs/plugin-react")},
        **{name: VERSIONS[name] for name in ("typescript", "ai", "@ai-sdk/react")},
    }
    for name in PACKAGES:
        known = json.loads((TS / "packages" / name / "package.json").read_text())
        wanted |= {
            each: version
            for each, version in known.get("dependencies", {}).items()
            if "@farhand/" not in each
        }
    return json.dumps({"name": "my-chat", "private": True, "type": "module", "dependencies": wanted})


async def installed(react: str) -> Path:
    """A folder with everything that the app and the packages need from the registry, and nothing of ours."""
    text = manifest(react)
    kept = ROOT / ".cache" / f"fresh-app-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as folder:
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
