"""The public address of the repository: written everywhere at once; no package is published without it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from scripts import set_address as script

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = "https://forge.example/team/farhand"
CHECK = "ts/check-address.mjs"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The manifests alone, as they are, without an address that they may have by now."""
    for source in [ROOT / "pyproject.toml", ROOT / CHECK, *(ROOT / "ts/packages").glob("*/package.json")]:
        target = tmp_path / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for path in manifests(tmp_path):
        known = json.loads(path.read_text())
        kept = {name: known[name] for name in known if name not in ("repository", "homepage", "bugs")}
        path.write_text(script.as_json(kept))
    return tmp_path


def manifests(root: Path) -> list[Path]:
    return sorted((root / "ts/packages").glob("*/package.json"))


def texts(root: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in [root / "pyproject.toml", *manifests(root)]}


def publish(package: Path) -> subprocess.CompletedProcess[str]:
    command = json.loads((package / "package.json").read_text())["scripts"]["prepublishOnly"].split()
    return subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=50, check=False)


def test_the_address_is_in_every_manifest_and_nothing_else_changes(copy: Path) -> None:
    before = texts(copy)
    assert set(script.set_address(copy, f"{ADDRESS}.git/")) == set(before)
    for path in manifests(copy):
        told = json.loads(path.read_text())
        name = path.parent.name
        assert told["repository"] == {
            "type": "git",
            "url": f"git+{ADDRESS}.git",
            "directory": f"ts/packages/{name}",
        }
        assert (told["homepage"], told["bugs"]) == (ADDRESS, {"url": f"{ADDRESS}/issues"})
        for field in ("repository", "homepage", "bugs"):
            del told[field]
        assert script.as_json(told) == before[path]
    pyproject = (copy / "pyproject.toml").read_text()
    urls = tomllib.loads(pyproject)["project"]["urls"]
    assert urls == {"Homepage": ADDRESS, "Repository": ADDRESS, "Issues": f"{ADDRESS}/issues"}
    kept = [line for line in pyproject.splitlines() if line in before[copy / "pyproject.toml"].splitlines()]
    assert [each for each in kept if each] == [
        each for each in before[copy / "pyproject.toml"].splitlines() if each
    ]


def test_a_second_run_changes_nothing_and_another_address_replaces_the_first(copy: Path) -> None:
    script.set_address(copy, ADDRESS)
    first = texts(copy)
    assert script.set_address(copy, ADDRESS) == []
    script.set_address(copy, "https://other.example/farhand")
    moved = texts(copy)
    assert not any(ADDRESS in text for text in moved.values())
    script.set_address(copy, ADDRESS)
    assert texts(copy) == first


@pytest.mark.parametrize(
    "address",
    [
        "",
        "farhand",
        "http://forge.example/team/farhand",
        "git@forge.example:team/farhand",
        "https:///team/farhand",
        "https://forge.example",
        "https://forge.example/",
        "https://forge.example/.git",
        "https://forge.example//farhand",
        'https://forge".example/farhand',
        "https://me:secret@forge.example/team/farhand",
        "https://forge.example/team/farhand?tab=readme",
        "https://forge.example/team/farhand#readme",
        'https://forge.example/team/far"hand',
        " https://forge.example/team/farhand",
    ],
)
def test_what_is_no_address_of_a_repository_is_refused_and_nothing_is_written(
    copy: Path, address: str
) -> None:
    before = texts(copy)
    with pytest.raises(ValueError, match="no address of a repository"):
        script.set_address(copy, address)
    assert texts(copy) == before


def test_a_manifest_with_another_layout_is_refused_and_nothing_is_written(copy: Path) -> None:
    odd = manifests(copy)[-1]
    odd.write_text(json.dumps(json.loads(odd.read_text())))
    before = texts(copy)
    with pytest.raises(ValueError, match=r"ts/packages/react/package\.json is not formatted"):
        script.set_address(copy, ADDRESS)
    assert texts(copy) == before


def test_a_pyproject_without_a_place_for_it_is_refused(copy: Path) -> None:
    (copy / "pyproject.toml").write_text('[project]\nname = "farhand"\n')
    with pytest.raises(ValueError, match="has no"):
        script.set_address(copy, ADDRESS)


def test_the_command_explains_itself_and_complains_in_one_line() -> None:
    assert script.main([]) == "usage: python scripts/set_address.py https://HOST/OWNER/NAME"
    complaint = script.main(["http://forge.example/x"])
    assert complaint is not None
    assert complaint.startswith("set_address: 'http://forge.example/x' is no address")
    assert "\n" not in complaint


# it starts Node
@pytest.mark.tools
def test_no_package_is_published_without_an_address(copy: Path) -> None:
    for path in manifests(copy):
        refused = publish(path.parent)
        name = json.loads(path.read_text())["name"]
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == (
            f"{name} has no repository, homepage, bugs yet: "
            "run `python scripts/set_address.py URL` with the repository's public address first.\n"
        )
    script.set_address(copy, ADDRESS)
    for path in manifests(copy):
        assert publish(path.parent).returncode == 0


def test_every_package_says_which_node_it_needs_and_checks_its_address() -> None:
    for path in manifests(ROOT):
        told = json.loads(path.read_text())
        assert told["engines"] == {"node": ">=20.19"}
        assert told["scripts"]["prepublishOnly"] == "node ../../check-address.mjs"
