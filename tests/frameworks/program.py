"""A program that is parked in one process and resumed in another: `python -m … NAME FOLDER park|resume`."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path

from tests.frameworks.loop import PAY, Loop
from tests.frameworks.processes import say
from tests.frameworks.stage import Stage


async def main(name: str, folder: Path, what: str) -> None:
    loop_class: type[Loop] = import_module(f"tests.frameworks.{name}.loop").LOOP
    async with (
        Stage(f"sqlite:///{folder}/hands.db", folder) as stage,
        loop_class(stage.hands, folder, [[PAY]], hold_for=0.1) as loop,
    ):
        if what == "park":
            assert await loop.run() is None
            say("parked")
            await asyncio.Event().wait()
        say(await loop.finish())


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
