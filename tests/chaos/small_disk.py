"""A disk that gets full: a file system of a few MiB in memory, visible only to processes started in it.

    with small_disk(folder, mib=4) as disk:
        async with farhand_process(agent, store=f"sqlite:///{disk.folder}/store.db", inside=disk.enter):
            disk.fill()
            disk.free()

No rights are needed but to make namespaces of one's own, which some machines refuse: `None` there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# cat ends with its input, and the disk with the last of its processes
_HOLD = 'mount -t tmpfs -o size="$1" farhand "$2" && echo mounted && exec cat'


class SmallDisk:
    def __init__(self, folder: Path, holder: int) -> None:
        self.folder = folder
        self.enter = ("nsenter", f"--target={holder}", "--user", "--mount", "--preserve-credentials", "--")
        self._seen = Path(f"/proc/{holder}/root") / folder.relative_to("/")

    def fill(self) -> None:
        """To the last byte."""
        with (self._seen / "ballast").open("ab", buffering=0) as ballast:
            for size in (65_536, 4096, 1):
                self._append(ballast.fileno(), bytes(size))

    def free(self) -> None:
        (self._seen / "ballast").unlink()

    def copy(self, place: Path) -> Path:
        """What is on it, to look at with programs that resolve names."""
        return Path(shutil.copytree(self._seen, place))

    def _append(self, descriptor: int, piece: bytes) -> None:
        try:
            while os.write(descriptor, piece):
                pass
        except OSError:
            return


@contextmanager
def small_disk(folder: Path, *, mib: int) -> Iterator[SmallDisk | None]:
    folder.mkdir()
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        _HOLD,
        "sh",
        f"{mib}m",
        str(folder),
    ]
    if shutil.which(command[0]) is None or shutil.which("nsenter") is None:
        yield None
        return
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        yield SmallDisk(folder, holder.pid) if holder.stdout.readline() == b"mounted\n" else None
        holder.stdin.close()
