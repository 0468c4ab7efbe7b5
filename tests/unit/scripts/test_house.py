from __future__ import annotations

from scripts.house import SMALL, SOURCES, small_modules


def test_a_small_module_with_one_importer_is_listed_with_it() -> None:
    for line in small_modules(SOURCES):
        module, _, rest = line.partition(": ")
        path = SOURCES.parent / f"{module.replace('.', '/')}.py"
        importer = SOURCES.parent / rest.rpartition(" ")[2].replace(".", "/")
        assert len(path.read_text().splitlines()) < SMALL
        assert importer.with_suffix(".py").exists() or (importer / "__init__.py").exists()


def test_the_four_files_of_a_face_are_not_listed() -> None:
    assert not [line for line in small_modules(SOURCES) if line.startswith("farhand.faces.ack.decode:")]
