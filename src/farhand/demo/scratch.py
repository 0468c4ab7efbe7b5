"""The folder whose files the demo may delete: its own, and nothing outside it, whatever path is asked for."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from pathlib import Path

from farhand.tools.execute import ToolFailed

FOLDER_VARIABLE = "FARHAND_DEMO_FOLDER"

SAMPLES = {
    "old-draft.txt": "Dear all, this draft was never finished.\n",
    "notes.md": "# Notes\n\nBuy bread. Call Ada.\n",
    "photos/holiday.txt": "Imagine a beach here.\n",
}


class CannotDelete(ToolFailed):
    """Nothing was deleted. The message says why, in the words of the caller: no place outside is named.

    It ends without a full stop, as what it is told in has one.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"Not deleted: {why}")


class Scratch:
    """A folder with a few sample files, put there only if it is new or empty."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder.resolve(strict=True)
        if not any(self.folder.iterdir()):
            self._fill()

    def delete(self, path: str) -> str:
        """Delete one file and give its name inside the folder; anything else is `CannotDelete`."""
        target = self._inside(path)
        try:
            if not target.is_file():
                raise CannotDelete(
                    f"there is no file {path!r} in the scratch folder; it has {self._listing()}"
                )
            target.unlink()
        except OSError as error:
            # the system's own message would name the place
            raise CannotDelete(f"{path!r} cannot be deleted: {error.strerror}") from error
        return target.relative_to(self.folder).as_posix()

    def files(self) -> list[str]:
        """The names of all files in it, sorted."""
        found = (each for each in self.folder.rglob("*") if each.is_file() and not each.is_symlink())
        return sorted(each.relative_to(self.folder).as_posix() for each in found)

    def _inside(self, path: str) -> Path:
        if not path.strip() or "\0" in path:
            raise CannotDelete("the path is empty, or no path at all")
        # an absolute path replaces the folder here, and has to lead back into it like any other
        asked = Path(os.path.normpath(self.folder / path))
        if not asked.is_relative_to(self.folder):
            raise CannotDelete(f"{path!r} is outside the scratch folder; this tool deletes only inside it")
        # a link may lead anywhere, wherever it lies itself
        if Path(os.path.realpath(asked)) != asked:
            raise CannotDelete(f"{path!r} goes through a link; this tool follows none")
        return asked

    def _fill(self) -> None:
        for name, text in SAMPLES.items():
            target = self.folder / name
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def _listing(self) -> str:
        names = self.files()
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        return (", ".join(names[:10]) or "no files at all") + more


def scratch() -> Scratch:
    """The demo's folder: the one the environment names, else a temporary one that goes with the process."""
    # tools run in threads, and two first calls must not make two folders
    with _lock:
        if not _made:
            _made.append(Scratch(_folder()))
        return _made[0]


_lock = threading.Lock()
_made: list[Scratch] = []


def _folder() -> Path:
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given)
    folder = tempfile.mkdtemp(prefix="farhand-demo-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
