from __future__ import annotations

from pathlib import Path

from scripts.check_names import LIMIT, shared_names

ROOT = Path(__file__).resolve().parents[3]


def test_the_source_shares_no_more_names_than_the_limit() -> None:
    assert len(shared_names(ROOT)) <= LIMIT


def test_a_class_and_a_function_of_two_modules_are_shared_names(tmp_path: Path) -> None:
    _write(tmp_path, "core/call.py", "class Call: ...\ndef open(): ...\n")
    _write(tmp_path, "wire/http.py", "class Call: ...\nasync def open(): ...\n")
    assert shared_names(tmp_path) == {
        "Call": ["core/call.py", "wire/http.py"],
        "open": ["core/call.py", "wire/http.py"],
    }


def test_private_names_and_names_inside_a_class_are_not_counted(tmp_path: Path) -> None:
    text = "class _Call: ...\ndef _open(): ...\nclass {}:\n    def read(self): ...\n"
    _write(tmp_path, "core/call.py", text.format("One"))
    _write(tmp_path, "wire/http.py", text.format("Other"))
    assert shared_names(tmp_path) == {}


def test_what_every_face_defines_is_one_role(tmp_path: Path) -> None:
    for face in ("ack", "events"):
        _write(tmp_path, f"faces/{face}/encode.py", "def encode_error(): ...\n")
    assert shared_names(tmp_path) == {}
    _write(tmp_path, "server/app.py", "def encode_error(): ...\n")
    assert list(shared_names(tmp_path)) == ["encode_error"]


def test_overloads_and_commands_are_not_counted(tmp_path: Path) -> None:
    _write(tmp_path, "tools/decorate.py", "def tool(a): ...\ndef tool(b): ...\n")
    _write(tmp_path, "cli/commands.py", "@commands.command()\ndef run(): ...\n")
    _write(tmp_path, "agent/loop.py", "async def run(): ...\n")
    assert shared_names(tmp_path) == {}


def test_the_most_frequent_name_comes_first(tmp_path: Path) -> None:
    _write(tmp_path, "a.py", "class Answer: ...\nclass Zebra: ...\n")
    _write(tmp_path, "b.py", "class Answer: ...\nclass Zebra: ...\n")
    _write(tmp_path, "c.py", "class Zebra: ...\n")
    assert list(shared_names(tmp_path)) == ["Zebra", "Answer"]


def _write(root: Path, name: str, text: str) -> None:
    path = root / "src" / "farhand" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
