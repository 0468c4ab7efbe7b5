"""YAML text as plain dictionaries, lists, texts and numbers, each with the line it stands on.

Built from the parsed nodes, so no constructor ever runs. Bare words follow YAML 1.2: `on`, `yes`, a date
or `12:30` stay words. A key that stands there twice is an error, since the second would hide the first.
"""

from __future__ import annotations

import json
import re

import yaml
from msgspec import Struct

_BARE: dict[str, object] = {"": None, "~": None, "null": None, "true": True, "false": False}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_PLACE = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<index>\d+)\]")


class NotYaml(ValueError):
    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


class Document(Struct, frozen=True):
    value: object
    root: object

    def line_of(self, place: str) -> int:
        """The line of `rules[0].steps`; where the place ends early, the line where it does."""
        node = self.root
        for step in _PLACE.finditer(place):
            inner = _inside(node, step["key"], int(step["index"] or 0))
            if inner is None:
                break
            node = inner
        return _line(node)


def read_yaml(text: str) -> Document:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return Document(_value(root), root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(mark.line + 1 if mark else 1, str(error.problem or error.context)) from error
    except yaml.YAMLError as error:
        raise NotYaml(1, str(error).splitlines()[0]) from error
    except RecursionError as error:
        raise NotYaml(1, "it contains itself, or is nested too deeply") from error


def _value(node: object) -> object:
    match node:
        case yaml.MappingNode():
            return _mapping(node)
        case yaml.SequenceNode():
            return [_value(each) for each in node.value]
        case yaml.ScalarNode():
            return _scalar(node)
        case _:
            return None


def _mapping(node: yaml.MappingNode) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise NotYaml(_line(key), "a key has to be a word")
        if key.value in found:
            raise NotYaml(_line(key), f"the key `{key.value}` stands there twice")
        found[key.value] = _value(value)
    return found


def _scalar(node: yaml.ScalarNode) -> object:
    if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
        raise NotYaml(_line(node), f"a value of the kind `{node.tag}` is not read here")
    text = str(node.value)
    bare = node.style is None and not node.tag.endswith(":str")
    if bare and text in _BARE:
        return _BARE[text]
    number: object = json.loads(text) if bare and _NUMBER.fullmatch(text) else text
    return number


def _inside(node: object, key: str | None, index: int) -> object:
    if key is None and isinstance(node, yaml.SequenceNode) and index < len(node.value):
        return node.value[index]
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def _line(node: object) -> int:
    return node.start_mark.line + 1 if isinstance(node, yaml.Node) else 1
