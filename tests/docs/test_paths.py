"""Files, modules and pages that the documentation names exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from farhand.errors import BadSetting

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "changes/*.md", "bench/**/*.md", "examples/**/*.md")
    for page in ROOT.glob(pattern)
    if "node_modules" not in page.parts
)
HOMES = (ROOT, ROOT / "src/farhand", ROOT / "src")
PATH = re.compile(
    r"(?<![\w/~.:-])[a-z_]\w*(?:/[\w<>.*-]+)*/(?:[\w-]+\.(?:py|md|json|toml|svg|sh))?(?![\w/*{])"
)
QUOTED = re.compile(r"`([^`\n]+)`")
MODULE = re.compile(r"`(farhand(?!\.db`)(?:\.\w+)+)(?:\(.*?\))?`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
LOGGERS = re.findall(r"^\| `(farhand\.\w+)`", (ROOT / "docs/reference/logging.md").read_text(), re.MULTILINE)


def named_paths(page: Path) -> set[str]:
    """What stands in backquotes and looks like a path; in architecture.md also what stands in blocks."""
    text = page.read_text()
    places = QUOTED.findall(text)
    if page.name == "architecture.md":
        places += re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {found for place in places for found in PATH.findall(place)}


def exists(path: str) -> bool:
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    return any(any(home.glob(pattern)) for home in HOMES)


def is_superseded(page: Path) -> bool:
    return "**Status.** Superseded" in page.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    if is_superseded(page):
        # a decision that no longer holds may name what it removed
        return
    assert {path for path in named_paths(page) if not exists(path)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    assert {link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_and_name_of_farhand_that_a_page_names_can_be_imported(page: Path) -> None:
    named = set(MODULE.findall(page.read_text())) - set(LOGGERS)
    assert {name for name in named if not can_be_imported(name)} == set()


def can_be_imported(name: str) -> bool:
    home, _, last = name.rpartition(".")
    try:
        import_module(name)
    except ModuleNotFoundError:
        return home != "" and can_be_imported(home) and hasattr(import_module(home), last)
    except BadSetting as error:
        # a bridge, where its framework is not installed
        return name.startswith("farhand.bridges.") and "pip install" in error.hint
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_command_that_a_page_names_is_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", page.read_text())) - targets == set()


def test_every_page_is_listed_in_the_readme() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text()))
    folders = ("tutorial", "how-to", "explanation", "reference")
    pages = {
        f"docs/{folder}/{page.name}" for folder in folders for page in (ROOT / "docs" / folder).glob("*.md")
    }
    assert pages - linked == set()


def test_every_decision_is_listed_with_its_status() -> None:
    folder = ROOT / "docs/decisions"
    table = (folder / "README.md").read_text()
    for page in folder.glob("0*.md"):
        title, _, _ = page.read_text().removeprefix("# ").partition("\n")
        number, _, topic = title.partition(" ")
        status = re.search(
            r"^\*\*Status\.\*\* (Accepted|Superseded by \[(\d{4})\])", page.read_text(), re.MULTILINE
        )
        assert status is not None, page.name
        word = f"superseded by {status[2]}" if status[2] else "accepted"
        assert f"| [{number}]({page.name}) | {topic} | {word} |" in table


def test_every_change_and_every_decision_has_a_number_of_its_own() -> None:
    for folder in ("changes", "docs/decisions"):
        numbers = [page.name[:4] for page in (ROOT / folder).glob("0*.md")]
        assert sorted(numbers) == sorted(set(numbers))


def test_the_map_of_the_code_names_many_paths_so_this_test_reads_it_right() -> None:
    named = named_paths(ROOT / "docs/explanation/architecture.md")
    assert {
        "server/rate_limiter.py",
        "eventlog/threads.py",
        "core/decide/",
        "faces/<face>/encode.py",
    } <= named
    assert len(named) > 50
