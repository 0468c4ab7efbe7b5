"""The error messages of the TypeScript set-up when its tools are missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "ts/set_up.sh"
OLD_NODE = '#!/bin/sh\n[ "$1" = --version ] && echo v18.0.0\n[ "$1" != -e ]\n'


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ({}, "node is missing"),
        ({"node": "#!/bin/sh\n"}, "npm is missing"),
        ({"node": OLD_NODE, "npm": "#!/bin/sh\n"}, "node is v18.0.0"),
        ({"node": "#!/bin/sh\n", "npm": "#!/bin/sh\nexit 1\n"}, "npm could not install"),
    ],
    ids=["no node", "no npm", "old node", "no network"],
)
def test_what_is_missing_is_reported_in_one_line(tools: dict[str, str], words: str, tmp_path: Path) -> None:
    for name in ("bash", "dirname", "sh"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    ended = subprocess.run(
        [str(shutil.which("bash")), str(SCRIPT)],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith(f"set-up stopped: {words}")
