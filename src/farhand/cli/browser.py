"""Opens the user's browser, where there is one: it never fails, and nothing waits for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping


def open_browser(address: str) -> bool:
    """False if there is none, or nobody to look at it."""
    opener = opener_for(sys.platform, os.environ)
    if opener is None:
        return False
    try:
        # a session of its own: Ctrl-C at the server must not close the browser; the address is our own
        opened = subprocess.Popen(  # noqa: S603
            [opener, address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    # nobody waits for it, but it must not stay behind as a zombie
    threading.Thread(target=opened.wait, daemon=True).start()
    return True


def opener_for(platform: str, environment: Mapping[str, str]) -> str | None:
    """The program that opens addresses; None in continuous integration, over SSH and without a display."""
    if environment.get("CI") or environment.get("SSH_CONNECTION"):
        return None
    if platform == "darwin":
        return shutil.which("open", path=environment.get("PATH"))
    if not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return None
    return shutil.which("xdg-open", path=environment.get("PATH"))
