from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from farhand.demo import scratch_folder as module
from farhand.demo.scratch_folder import FOLDER_VARIABLE, MOST_CHATS, SAMPLES, CannotDelete, Scratch, scratch


@pytest.fixture
def folder(tmp_path: Path) -> Scratch:
    (tmp_path / "secret.txt").write_text("keep me")
    return Scratch(tmp_path / "scratch")


def test_a_new_folder_starts_with_the_samples(folder: Scratch) -> None:
    assert folder.files() == sorted(SAMPLES)


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert Scratch(tmp_path).files() == ["mine.txt"]


def test_a_sample_that_was_deleted_is_there_again_for_the_next_chat_and_after_a_restart(
    folder: Scratch,
) -> None:
    for chat in ("first", "second"):
        folder.enter(chat)
        assert folder.delete("old-draft.txt") == "old-draft.txt"
        folder.enter(chat)
        with pytest.raises(CannotDelete, match="there is no file"):
            folder.delete("old-draft.txt")
    assert Scratch(folder.folder).files() == sorted(SAMPLES)


def test_a_folder_with_files_of_somebody_s_own_gets_no_samples(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("my own notes")
    mine = Scratch(tmp_path)
    mine.enter("first")
    assert (mine.files(), (tmp_path / "notes.md").read_text()) == (["notes.md"], "my own notes")


def test_only_so_many_chats_are_remembered(folder: Scratch) -> None:
    for number in range(MOST_CHATS + 2):
        folder.enter(str(number))
    assert len(folder._chats) == MOST_CHATS


@pytest.mark.parametrize("path", ["old-draft.txt", "./old-draft.txt", "photos/../old-draft.txt"])
def test_a_file_inside_is_deleted_and_nothing_else(folder: Scratch, path: str) -> None:
    assert folder.delete(path) == "old-draft.txt"
    assert folder.files() == ["notes.md", "photos/holiday.txt"]


def test_an_absolute_path_into_the_folder_is_as_good_as_a_relative_one(folder: Scratch) -> None:
    assert folder.delete(str(folder.folder / "photos" / "holiday.txt")) == "photos/holiday.txt"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../secret.txt", "outside the scratch folder"),
        ("photos/../../secret.txt", "outside the scratch folder"),
        ("/etc/passwd", "outside the scratch folder"),
        ("..", "outside the scratch folder"),
        ("../scratch-2/x", "outside the scratch folder"),
        ("", "empty"),
        ("   ", "empty"),
        ("old-draft.txt\0", "empty or invalid"),
        (".", "there is no file"),
        ("photos", "there is no file 'photos' in the scratch folder; it has notes.md, old-draft.txt"),
        ("missing.txt", "there is no file"),
        ("~/x", "there is no file"),
        ("x" * 5_000, "cannot be deleted: File name too long"),
        ("old-draft.txt/x", "there is no file"),
    ],
)
def test_any_other_path_is_refused_and_nothing_is_lost(folder: Scratch, path: str, why: str) -> None:
    with pytest.raises(CannotDelete, match=why) as refused:
        folder.delete(path)
    assert str(refused.value).startswith("Not deleted: ")
    assert str(folder.folder.parent) not in str(refused.value)
    assert folder.files() == sorted(SAMPLES)
    assert (folder.folder.parent / "secret.txt").read_text() == "keep me"


def test_links_are_not_followed_wherever_they_lead(folder: Scratch) -> None:
    (folder.folder / "link.txt").symlink_to(folder.folder.parent / "secret.txt")
    (folder.folder / "way").symlink_to(folder.folder.parent)
    (folder.folder / "loop").symlink_to(folder.folder / "loop")
    (folder.folder / "near.txt").symlink_to(folder.folder / "notes.md")
    for path in ("link.txt", "way/secret.txt", "way/scratch/notes.md", "near.txt"):
        with pytest.raises(CannotDelete, match="symbolic link"):
            folder.delete(path)
    with pytest.raises(CannotDelete):
        folder.delete("loop/x")
    assert folder.files() == sorted(SAMPLES)
    assert (folder.folder.parent / "secret.txt").exists()


def test_a_long_listing_is_cut_and_an_empty_one_says_so(folder: Scratch) -> None:
    for name in folder.files():
        folder.delete(name)
    with pytest.raises(CannotDelete, match="it has no files at all"):
        folder.delete("x")
    for number in range(12):
        (folder.folder / f"{number:02}").touch()
    with pytest.raises(CannotDelete, match="08, 09 and 2 more"):
        folder.delete("x")


def test_the_environment_may_name_the_folder_and_it_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_created", [])
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "given"))
    assert scratch().folder == (tmp_path / "given").resolve()
    assert scratch() is scratch()


@pytest.mark.slow
def test_without_one_it_is_a_temporary_folder_that_goes_with_the_process() -> None:
    show = "from farhand.demo.scratch_folder import scratch; print(scratch().folder, len(scratch().files()))"
    clean = {name: value for name, value in os.environ.items() if name != FOLDER_VARIABLE}
    shown = subprocess.run(
        [sys.executable, "-c", show], env=clean, capture_output=True, text=True, check=True
    )
    folder, count = shown.stdout.split()
    assert Path(folder).name.startswith("farhand-demo-")
    assert int(count) == len(SAMPLES)
    assert not Path(folder).exists()
