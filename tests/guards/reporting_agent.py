"""An agent for `farhand run` whose process reports at exit which modules it loaded and how it collected
garbage.

Must not be imported by a test: it speaks for the whole process that does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from pathlib import Path

from farhand import Agent
from tests.guards.counted_round_trip import OneCall, open_url

agent = Agent(model=OneCall(), frontend_tools=[open_url])


def _tell() -> None:
    told = {
        "modules": sorted(sys.modules),
        "threshold": gc.get_threshold()[0],
        "enabled": gc.isenabled(),
        "frozen": gc.get_freeze_count(),
    }
    Path(os.environ["TOLD_AT"]).write_text(json.dumps(told))


atexit.register(_tell)
