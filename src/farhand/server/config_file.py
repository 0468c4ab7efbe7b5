"""The settings file: where it is, TOML or JSON, and the words of other programs it may use.

Must not know which settings there are. Whatever is wrong with the file is one sentence that names it.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from farhand.errors import BadSetting


def find_file(named: str | None) -> Path | None:
    """The named file, else the user's own if there is one."""
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise BadSetting(f"There is no settings file '{path}'.", hint="Check --config or FARHAND_CONFIG.")
        return path
    home = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "farhand"
    found = [path for path in (home / "config.toml", home / "config.json") if path.is_file()]
    if len(found) > 1:
        raise BadSetting(
            f"There are two settings files in '{home}'.", hint="Keep config.toml or config.json."
        )
    return found[0] if found else None


def read_file(path: Path) -> dict[str, object]:
    """What the file says, in the words of the settings."""
    try:
        text = path.read_text(encoding="utf-8")
        read: object = _READERS[path.suffix](text)
    except KeyError:
        raise BadSetting(
            f"The settings file '{path}' is of no known kind.", hint="Use .toml or .json."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise BadSetting(f"The settings file '{path}' cannot be read: {what}.") from None
    if not isinstance(read, dict):
        raise BadSetting(f"The settings file '{path}' must hold one object.", hint='Write {"port": 8787}.')
    return _in_our_words(read, path)


_READERS = {".toml": tomllib.loads, ".json": json.loads}

# milliseconds in that program's file, seconds in ours
_CLIENT_TOOLS: Mapping[str, str] = {"defaultTimeout": "client_call", "keepaliveInterval": "client_ping"}


def _in_our_words(read: dict[str, object], path: Path) -> dict[str, object]:
    """`clientTools` as other servers of client tools spell it, in milliseconds."""
    foreign = read.pop("clientTools", None)
    if foreign is None:
        return read
    if not isinstance(foreign, dict):
        raise BadSetting(f"{path}: clientTools must be an object.")
    patience = read.setdefault("patience", {})
    for key, value in foreign.items():
        ours = _CLIENT_TOOLS.get(key)
        if ours is None:
            known = " and ".join(_CLIENT_TOOLS)
            raise BadSetting(f"{path}: there is no setting 'clientTools.{key}'.", hint=f"There are {known}.")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadSetting(f"{path}: clientTools.{key} must be a number of milliseconds.")
        if isinstance(patience, dict) and patience.setdefault(ours, value / 1000) != value / 1000:
            raise BadSetting(f"{path}: clientTools.{key} and patience.{ours} say different things.")
    return read
