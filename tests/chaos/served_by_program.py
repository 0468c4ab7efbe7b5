"""Programs that serve from Python: `serve` or `aserve`, by their first argument."""

from __future__ import annotations

import asyncio
import signal
import sys

import farhand
from tests.chaos.agents import agent


async def main() -> None:
    before = signal.getsignal(signal.SIGTERM)
    await farhand.aserve(agent, port=0)
    same = signal.getsignal(signal.SIGTERM) is before
    sys.stdout.write(f"aserve returned; handlers {'restored' if same else 'lost'}\n")


if __name__ == "__main__":
    if sys.argv[1] == "aserve":
        asyncio.run(main())
    else:
        farhand.serve(farhand.create_app(agent), host="127.0.0.1", port=0)
        sys.stdout.write("serve returned\n")
