"""Imports the agent or app to serve: `module:agent`, `path/to/file.py:agent`, or `module:app`.

Every mistake becomes one sentence, because the user's code may raise anything while it is imported.
"""

from __future__ import annotations

import importlib
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from farhand.agent.agent import Agent
from farhand.errors import BadSetting
from farhand.server.app import App

DEFAULT_NAME = "agent"


def load_target(target: str) -> Agent | App:
    place, _, name = target.rpartition(":") if ":" in target else (target, "", DEFAULT_NAME)
    is_file = place.endswith(".py") or "/" in place
    if not _NAME.fullmatch(name) or not (is_file or _NAME.fullmatch(place)):
        raise BadSetting(f"'{target}' does not name an agent.", hint=_FORMS)
    module = _import_file(place) if is_file else _import_module(place)
    return _find_servable(module, place, name)


_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_FORMS = "Write module:agent or path/to/file.py:agent."
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_FARHAND = str(Path(__file__).parents[1])


def _import_module(name: str) -> ModuleType:
    # sys.path of a console script begins with the script's folder; an empty entry is the current one
    sys.path.insert(0, "")
    return _import(name, lambda: importlib.import_module(name))


def _import_file(place: str) -> ModuleType:
    path = _find_file(place)
    # under another name: agent.py must not hide a module named agent
    spec = spec_from_file_location(f"farhand_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadSetting(f"'{place}' is not a Python file.", hint=_FORMS)
    sys.path.insert(0, str(path.parent))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    load = spec.loader.exec_module

    def run() -> ModuleType:
        load(module)
        return module

    return _import(place, run)


def _find_file(place: str) -> Path:
    try:
        path = Path(place).expanduser().resolve()
        is_file = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).removesuffix(".")
        raise BadSetting(f"'{place}' cannot be read: {reason}.", hint=_FORMS) from None
    if not is_file:
        raise BadSetting(f"There is no file '{place}'.", hint=_FORMS)
    return path


def _import(place: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except KeyboardInterrupt:
        raise
    # whatever the user's code raises, including SystemExit, the command fails with one line
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and _is_missing(place, error.name):
            raise BadSetting(f"There is no module '{place}' here.", hint=_FORMS) from None
        raise BadSetting(f"'{place}' cannot be imported: {_cause(error)}") from error


def _is_missing(place: str, name: str | None) -> bool:
    return name is not None and (place == name or place.startswith(f"{name}."))


def _cause(error: BaseException) -> str:
    """The last line of the traceback, and the line of the user's code that led to it."""
    message = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{message} ({_short(error.filename)}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_library(frame.filename)]
    last = (own or frames)[-1]
    return f"{message} ({_short(last.filename)}:{last.lineno})"


def _is_library(file: str) -> bool:
    return file.startswith(("<", _FARHAND, *_LIBRARIES))


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _find_servable(module: ModuleType, place: str, name: str) -> Agent | App:
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise BadSetting(f"'{place}' has no '{name}'.", hint=_suggest(module, place))
        found = getattr(found, part)
    if not isinstance(found, Agent | App):
        kind = type(found).__name__
        raise BadSetting(
            f"'{place}:{name}' is not an Agent or an app of create_app but of type {kind}.",
            hint=_suggest(module, place),
        )
    return found


def _suggest(module: ModuleType, place: str) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Agent | App)]
    return f"Did you mean {place}:{names[0]}?" if names else "Make one: agent = farhand.Agent(...)."
