"""Builds the pages that the documentation and the packages' READMEs print, as a reader does."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.process import ROOT

TS = ROOT / "ts"
BLOCK = re.compile(r"^```(tsx?)\n(.*?)^```", re.MULTILINE | re.DOTALL)

CONFIG = """
import react from "@vitejs/plugin-react";
import { readdirSync } from "node:fs";
import { defaultClientConditions } from "vite";
const input = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".html"));
export default {
  root: import.meta.dirname,
  base: "./",
  plugins: [react()],
  resolve: { conditions: ["farhand-source", ...defaultClientConditions] },
  // unminified, with React's own warnings and its double mounting
  build: { outDir: "out", target: "es2023", minify: false, rolldownOptions: { input } },
};
"""

HTML = """<!doctype html><title>A page of the docs</title><div id="root"></div>
<script type="module" src="./{name}.main.tsx"></script>"""


class Block(NamedTuple):
    """One block of code, and the file that it is printed in."""

    source: str
    number: int
    kind: str
    code: str

    @property
    def name(self) -> str:
        return re.sub(r"\W+", "-", f"{self.source} {self.number}").lower()


def printed() -> list[Block]:
    """Every TypeScript block of the docs and the READMEs."""
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *TS.glob("packages/*/README.md")]
    return [
        Block(str(file.relative_to(ROOT)), number, kind, code)
        for file in sorted(files)
        for number, (kind, code) in enumerate(BLOCK.findall(file.read_text()))
    ]


async def build(blocks: Mapping[str, tuple[Block, str]], folder: Path, replaced: Mapping[str, str]) -> None:
    """Each block by the name of its page, with the code that puts it on screen; into this folder."""
    # inside the workspace, where the packages are found
    workshop = Path(tempfile.mkdtemp(prefix=".pages-", dir=TS / "tests"))
    try:
        (workshop / "vite.config.mjs").write_text(CONFIG)
        (workshop / "tools.ts").write_text(
            "export type Handlers = Record<string, (input: any) => unknown>;\n"
        )
        for name, (block, main) in blocks.items():
            code = block.code
            for old, new in replaced.items():
                code = code.replace(old, new)
            (workshop / f"{name}.code.{block.kind}").write_text(code)
            (workshop / f"{name}.main.tsx").write_text(main)
            (workshop / f"{name}.html").write_text(HTML.format(name=name))
        await _vite(workshop)
        shutil.copytree(workshop / "out", folder, dirs_exist_ok=True)
    finally:
        shutil.rmtree(workshop)


async def _vite(workshop: Path) -> None:
    config = str(workshop / "vite.config.mjs")
    vite = await asyncio.create_subprocess_exec(
        str(TS / "node_modules/.bin/vite"), "build", "--mode", "development", "--config", config,
        cwd=TS, env={**os.environ, "NODE_ENV": "development"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(vite.communicate(), 120)
    assert vite.returncode == 0, out.decode()
