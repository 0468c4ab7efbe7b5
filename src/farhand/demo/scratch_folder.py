"""The folder in which the demo may delete files. Files outside it are safe, whatever path is requested."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from pathlib import Path

from farhand import ToolFailed

FOLDER_VARIABLE = "FARHAND_DEMO_FOLDER"
MOST_CHATS = 1_000

SAMPLES = {
    "old-draft.txt": "Dear all, this draft was never finished.\n",
    "notes.md": "# Notes\n\nBuy bread. Call Ada.\n",
    "photos/holiday.txt": "Imagine a beach here.\n",
}


class CannotDelete(ToolFailed):
    """Nothing was deleted. The message gives the reason and contains no path except the caller's own.

    It ends without a full stop, because the sentence around it has one.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"Not deleted: {why}")


class Scratch:
    """A folder with a few sample files, if it holds nothing else.

    Those that were deleted are restored for the next chat, so that everyone who tries the demo has something
    to delete.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder.resolve(strict=True)
        self._is_ours = all(map(self._is_sample, self._names()))
        self._chats: dict[str, None] = {}
        self._lock = threading.Lock()
        self._fill()

    def enter(self, chat: str) -> None:
        """Restores the samples for a chat that deletes its first file."""
        with self._lock:
            if chat in self._chats:
                return
            if len(self._chats) >= MOST_CHATS:
                del self._chats[next(iter(self._chats))]
            self._chats[chat] = None
            self._fill()

    def delete(self, path: str) -> str:
        """Deletes one file and returns its path inside the folder. Raises `CannotDelete` otherwise."""
        target = self._inside(path)
        try:
            if not target.is_file():
                raise CannotDelete(
                    f"there is no file {path!r} in the scratch folder; it has {self._listing()}"
                )
            target.unlink()
        except OSError as error:
            # the system's own message would contain the folder
            raise CannotDelete(f"{path!r} cannot be deleted: {error.strerror}") from error
        return target.relative_to(self.folder).as_posix()

    def files(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(self._names(only_files=True))

    def _names(self, *, only_files: bool = False) -> list[str]:
        """Of everything that is no folder; links are no files."""
        found = [each for each in self.folder.rglob("*") if each.is_symlink() or not each.is_dir()]
        kept = [each for each in found if not only_files or (each.is_file() and not each.is_symlink())]
        return [each.relative_to(self.folder).as_posix() for each in kept]

    def _inside(self, path: str) -> Path:
        if not path.strip() or "\0" in path:
            raise CannotDelete("the path is empty or invalid")
        # an absolute path replaces the folder here, and must be inside it like any other
        asked = Path(os.path.normpath(self.folder / path))
        if not asked.is_relative_to(self.folder):
            raise CannotDelete(f"{path!r} is outside the scratch folder; this tool deletes only inside it")
        # a link may point anywhere
        if Path(os.path.realpath(asked)) != asked:
            raise CannotDelete(f"{path!r} is or contains a symbolic link, which this tool does not follow")
        return asked

    def _is_sample(self, name: str) -> bool:
        target = self.folder / name
        is_file = name in SAMPLES and target.is_file() and not target.is_symlink()
        return is_file and target.read_bytes() == SAMPLES[name].encode()

    def _fill(self) -> None:
        for name, text in SAMPLES.items() if self._is_ours else ():
            target = self.folder / name
            if not target.exists():
                target.parent.mkdir(exist_ok=True)
                target.write_text(text, encoding="utf-8")

    def _listing(self) -> str:
        names = self.files()
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        return (", ".join(names[:10]) or "no files at all") + more


def scratch() -> Scratch:
    """The demo's folder: from the environment, otherwise a temporary one that is removed at exit."""
    # tools run in threads, and two first calls must not create two folders
    with _lock:
        if not _created:
            _created.append(Scratch(_folder()))
        return _created[0]


_lock = threading.Lock()
_created: list[Scratch] = []


def _folder() -> Path:
    configured = os.environ.get(FOLDER_VARIABLE)
    if configured:
        return Path(configured)
    folder = tempfile.mkdtemp(prefix="farhand-demo-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
