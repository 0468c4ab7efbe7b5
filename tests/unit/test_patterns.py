"""Every regular expression in the source matches in linear time, whatever text it is given.

The source is read for them: one without an entry in `HOSTILE` fails the first test. An entry lists pieces of
text that, repeated, make the pattern try as many ways to match as it has.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple

import pytest

import farhand

SOURCE = Path(farhand.__file__).parent
METHODS = frozenset({"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"})
SIZES = (64, 4 * 1024, 32 * 1024, 256 * 1024)
LINEAR = {64: 2.0, 4 * 1024: 2.0, 32 * 1024: 2.0, 256 * 1024: 10.0}
"""Seconds by size. Linear matching takes milliseconds, a quadratic one seconds at 32 KiB and then minutes."""

GENERAL = ("a", "0", " ", "-")
"""Pieces for every pattern, beside its own."""
ENDS = ("", "!")
"""Behind the pieces: nothing, or something that makes a match of the whole text fail."""

HOSTILE: dict[str | bytes, tuple[str, ...]] = {
    r"```.*?(?:```|$)": ("```", "`"),
    r"!?\[([^\[\]\n]{0,100})\]\([^()\n]{0,300}\)": ("[", "[a](", "![a](b"),
    r"https?://(?:www\.)?([^/\s]+)\S*": ("https://", "http://www."),
    r"(?:(?<=\s)|^)(?:[#>*`~]{1,6}(?=\s|\w|$)|-(?=\s))|(?<=\S)[*`~]{1,3}(?=[\s.,;:!?]|$)": (
        "*",
        " *",
        "`~",
        " - ",
        "# ",
    ),
    r"Returns:\s*[\"'“`]?yes[\"'”`]?\s*(?:or|/|,)\s*[\"'“`]?no[\"'”`]?[.\s]*\Z": (
        "Returns:",
        "Returns: ",
        " ",
        "Returns: yes ",
        "Returns: yes or no. ",
        ".",
    ),
    "(?:%[0-9A-Fa-f]{2})+": ("%20", "%", "%2"),
    r"%(?![0-9A-Fa-f]{2})": ("%20", "%", "%2"),
    "[A-Za-z0-9-]+": ("a-",),
    r"[?&]token=([^&#\s]+)": ("?token=", "&token=a", "?"),
    r"[^A-Za-z0-9_.-]+": ("/", "a/", ": "),
    r"\{\{|\}\}|\{([^{}]*)\}|[{}]": ("{", "{a", "{{", "}", "{a}"),
    r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*": ("a.", "a", "a.a"),
    r"([^=]+)=\s*([0-9.]+)\s*/\s*([0-9.]+)": ("a=", "a=1", "a=1/", "=", " "),
    "[\x7f-\x9f]": ("\x7f", "a\x9f"),
    "[0-9a-f]{64}": ("0a",),
    r"([0-9]+(?:\.[0-9]+)?)([smhdw]?)": ("1.", "1s"),
    r"[^\W\d]\w*(\.[^\W\d]\w*)*": ("a.", "a1", "a.a1"),
    r"([0-9]{1,15})(?:\.([0-9]{1,15}))?": ("1.", "1"),
    r"\$(\d+)": ("$1", "$"),
    "[A-Za-z0-9_-]{1,8}": ("a_",),
    "blob_[0-9a-f]{32}": ("blob_", "blob_" + "0" * 31),
    r"[/\\]": ("/", "\\"),
    '[<>:"|?*]': ("<", "?a"),
    "[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+": ("a/", "/", "a+"),
    "[A-Za-z0-9_.:-]{1,128}": ("a:",),
    "[A-Za-z0-9_.:-]{1,200}": ("a:",),
    "[a-z0-9!#$%&'+.^_`|~-]{1,128}": ("a!",),
    "[A-Za-z0-9_-]{1,64}": ("a_",),
    "<(?=/?(?:": ("<", "</", "<tool", "</tool_"),
    "[^A-Za-z0-9_.:-]": ("!", "a!"),
    r"\.[A-Za-z0-9_-]{1,60}": (".", ".a"),
    "[a-z0-9]+": ("a.",),
    "[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+": ("A", "Aa", "AAAa", "a0A"),
    "-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----": (
        "-----BEGIN ",
        "-----BEGIN " + "A" * 40,
        "-----BEGIN PRIVATE KEY-----",
        "PRIVATE KEY",
    ),
    r"\beyJ[\w-]{5,}+(\.[\w-]*+){0,4}": ("eyJ-", "eyJ", "eyJaaaaa.", "eyJ-.", "eyJaaaaa-."),
    "[A-Za-z0-9+/_=-]{24,}": ("a" * 23 + " ", "a/"),
    "(?:call|run|thr|apr|cli|blob|msg)_[0-9a-f]{32}": ("call_", "call_" + "0" * 31),
    "[0-9a-fA-F]{32,}": ("0" * 31 + "g",),
    "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}": ("00000000-", "0000-"),
    r"(?i)\b(bearer)\s{1,8}[\w.~+/=:-]{4,}": ("bearer ", "bearer", "bearer\t\t\t\t\t\t\t\tabc "),
    r"\b([Bb]asic)\s{1,8}(?=[\w+/]{0,200}(?:[0-9=]|[a-z][A-Z]))[\w+/]{8,}={0,2}": (
        "basic ",
        "basic        " + "a" * 200,
        "basic a/",
    ),
    r"(://[^/\s:@]{0,200}):[^/\s@]{1,200}@": ("://", "://a:", ":", "://" + "a" * 200 + ":" + "a" * 200),
    r"\b(?:sk|pk|rk|gh[opsu]|github_pat|glpat|xox[a-z]|hf|npm|pypi)[-_][\w-]{12,}": (
        "sk-",
        "sk-sk_",
        "sk-a ",
    ),
    r"\b(?:AKIA|ASIA|AIza)[\w-]{12,}": ("AKIA", "AKIA-", "AKIA "),
    # a password, a key or a token by its name
    "(?i)((?:password|": (
        "password",
        "password-",
        "token'\"\\' : ",
        "token" + "-" * 40,
        "secret  :  ''''bearer ",
        "password=",
    ),
    r"[0-9]{1,12}(\.[0-9]{1,17})?": ("1.", "1"),
    r"(?:/(?!/)[^?#\\]*)?/api/files/(blob_[0-9a-f]{32})": (
        "/api/files/",
        "/",
        "/api/files/blob_" + "0" * 32,
    ),
    "[A-Za-z0-9_.-]{1,64}": ("a.",),
    "[A-Za-z0-9_-]+": ("a_",),
    "[^A-Za-z0-9_-]+": ("!a", "!"),
    r"\{\{|\}\}|\{(?P<fill>[^{}]*)\}|[{}]": ("{", "{a", "}", "{a}"),
    r"(?P<root>\w+)(?P<rest>(?:\.[^.\[\]|\s]+|\[-?\d+\])*)": ("a.", "a.a", "[1]", "a[-1"),
    r"\.(?P<key>[^.\[\]]+)|\[(?P<index>-?\d+)\]": (".", ".a", "[1", "[-1]"),
    r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?": ("1", "1.1", "1e1", "-"),
    r"(?P<key>[^.\[\]]+)|\[(?P<index>\d+)\]": ("a.", "[1", "[1]"),
    # written by the author of a script, and matched with the first 2,000 characters of a text alone
    "expression": (),
    r"\[\d+\]": ("[1", "[", "[1]"),
    r"\S+\s*|\s+": ("a ", " a", "\u2003"),
    # a host: labels between dots
    "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}": ("a.", "a-", "a" * 63 + ".", "-."),
    "[A-Za-z0-9._~-]{16,256}": ("a~",),
    r"\{(\w+)\}": ("{", "{a", "{a}"),
    r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?": (
        "a://",
        "a+",
        "a:1",
        "a://[::",
        "://",
    ),
    # variables of the environment that are not settings
    "DEMO_FOLDER|": ("PORT_1_", "SERVICE_PORT", "PORT_1"),
    r"\r\n|.": ("\r\n", "\r"),
    "(tcp|udp)://": ("tcp://", "tcp"),
    "sqlite:///.*|(?:(?:memory|sqlite):)?[^@:?=]*": ("sqlite:///", "memory:", "sqlite:a"),
    r"[\w.+-]*": ("a.",),
    r"(?:[\w.,%-]|:\d|\[[0-9a-fA-F:.]*\])*(?:/[^\s:@#]*)?": (":11", ":1", "[::1]", "[", "a/", "[:"),
    "(?!.*pass)[a-z_]+=[^#]*": ("a=", "pas", "pass", "a=pass"),
    "[a-z_][a-z0-9_]{0,50}": ("a_",),
    # an event of a stream
    # characters that a reader does not see
    "[\x00-\x08\x0b-\x1f\x7f-\x9f": ("\x00", "\u202e"),
    "[A-Za-z_$][A-Za-z0-9_$]*": ("a$",),
    "[^A-Za-z0-9]+": ("a!", "!"),
    r"(?:\[([0-9a-fA-F:.]{2,45})\]|([A-Za-z0-9._-]{1,253}))(?::([0-9]{1,5}))?": ("[::", "a.", ":1", "[::1]"),
    rb"[eE][-+]?0*(?:[2-9]\d\d|\d{4,})": ("e", "e0", "e+0", "e1", "e0000199"),
    b"[-+.0-9eE]+": ("1e", "1 "),
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}": ("\\ud800", "\\ud800\\u", "\\"),
    rb"\\u[dD][89a-fA-F]": ("\\u", "\\ud"),
    r"\(byte (\d+)\)": ("(byte ", "(byte 1", "(byte 1)"),
    "[^</][^<]*": ("a<", "/"),
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]": ("\x00",),
    b"\\r\\n|\\r|\\n": ("\r", "\r\n", "\n"),
}
"""By the pattern; a long one by its beginning."""

MADE_BY_FUNCTIONS: dict[str | bytes, str] = {
    "<(?=/?(?:{either}))": "<(?=/?(?:tool_call|tool_result|pause))",
    "expression": "book (?P<what>.+)",
}
"""What only a function knows, as it is made for instance."""


class Use(NamedTuple):
    place: str
    pattern: str | bytes
    flags: int
    methods: frozenset[str]


class _Calls(ast.NodeVisitor):
    """All calls of `re.something` in one module, and which methods are called on which name."""

    def __init__(self) -> None:
        self.calls: list[ast.Call] = []
        self.named: dict[int, str] = {}
        self.methods: dict[str, set[str]] = {}

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.targets[0], ast.Name):
            self.named[id(node.value)] = node.targets[0].id
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id == "re" and function.attr != "escape":
                self.calls.append(node)
            elif function.attr in METHODS:
                self.methods.setdefault(function.value.id, set()).add(function.attr)
        self.generic_visit(node)


def uses() -> Iterator[Use]:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # this runs when tests are collected, in every process
        if "import re\n" not in text:
            continue
        place = ".".join(("farhand", *path.relative_to(SOURCE).with_suffix("").parts))
        found = _Calls()
        found.visit(ast.parse(text))
        for call in found.calls:
            yield _use(place, call, found)


def _use(place: str, call: ast.Call, found: _Calls) -> Use:
    assert isinstance(call.func, ast.Attribute)
    names = vars(importlib.import_module(place.removesuffix(".__init__")))
    pattern = _value(call.args[0], names)
    how = call.func.attr
    flags = _value(call.args[1], names) if how == "compile" and len(call.args) > 1 else 0
    methods = found.methods.get(found.named.get(id(call), ""), {"finditer"}) if how == "compile" else {how}
    return Use(place, pattern, int(flags), frozenset(methods))


def _value(written: ast.expr, names: Mapping[str, Any]) -> Any:
    """What it is at run time; the words of the source where only a function knows."""
    try:
        # our own source, and nothing in it but texts and names
        return eval(compile(ast.Expression(written), "pattern", "eval"), dict(names))
    except NameError:
        return ast.unparse(written).removeprefix("f").strip("'\"")


def entry_of(use: Use) -> str | bytes | None:
    if use.pattern in HOSTILE:
        return use.pattern
    beginnings = [each for each in HOSTILE if type(each) is type(use.pattern) and _begins(use.pattern, each)]
    return max(beginnings, key=len, default=None)


def _begins(pattern: Any, beginning: Any) -> bool:
    return len(beginning) > 8 and bool(pattern.startswith(beginning))


ALL = list(uses())


def test_every_pattern_of_the_source_has_hostile_texts_here() -> None:
    missing = [f"{use.place}: {use.pattern!r}" for use in ALL if entry_of(use) is None]
    assert not missing, "patterns without an entry in HOSTILE"
    unused = set(HOSTILE) - {entry_of(use) for use in ALL}
    assert not unused, "entries for patterns that are gone"


def test_patterns_are_made_with_re_alone_so_that_they_are_all_found() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"^\s*(?:from re import|import re as|import regex|from regex)", text, re.MULTILINE
        ), path


@pytest.mark.sweep
@pytest.mark.parametrize("use", ALL, ids=[f"{use.place.partition('.')[2]}-{n}" for n, use in enumerate(ALL)])
def test_no_text_makes_a_pattern_take_long(use: Use) -> None:
    entry = entry_of(use)
    assert entry is not None, "the first test says which"
    pattern = re.compile(MADE_BY_FUNCTIONS.get(use.pattern, use.pattern), use.flags)
    for piece in (*HOSTILE[entry], *GENERAL):
        for end in ENDS:
            for size in SIZES:
                took = _seconds(pattern, use.methods, piece * (size // len(piece)) + end)
                assert took < LINEAR[size], (
                    f"{use.pattern!r}: {piece!r} took {took:.1f} s at {size} characters"
                )


def _seconds(pattern: re.Pattern[Any], methods: frozenset[str], text: str) -> float:
    given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    empty: Any = given[:0]
    begun = thread_time()
    for method in methods:
        match method:
            case "sub" | "subn":
                getattr(pattern, method)(empty, given)
            case "finditer":
                deque(pattern.finditer(given), maxlen=0)
            case _:
                getattr(pattern, method)(given)
    return thread_time() - begun
