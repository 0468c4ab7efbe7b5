"""Shared by all suites: the event loop of async tests, and the effort of property tests.

Async tests run on asyncio alone: it is the only loop farhand serves on. Properties search the same examples
on every run, so that a failure here fails everywhere; `--hypothesis-profile=search` looks for new ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.chaos.time_limit_check import MISSED
from tests.postgres import Cluster, running_cluster

# the laws are published with farhand, so pytest has to be told that their assertions are tests
pytest.register_assert_rewrite("farhand.testing.store_laws")

# no example is judged by how long it took: the machine may be busy
settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=2_000, print_blob=True)
settings.register_profile("quick", settings.get_profile("steady"), max_examples=15)
settings.load_profile("steady")


REPOSITORY = (
    "tests/unit/scripts/",
    "tests/unit/test_extras.py",
    "tests/unit/test_imports.py",
    "tests/unit/test_patterns.py",
    "tests/unit/test_repository.py",
    "tests/unit/test_requirements.py",
)
"""They look at the whole tree, or load it in processes of their own."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def no_settings_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An app reads variables and the settings file when it starts: those of whoever runs the tests must not
    reach it."""
    home = tmp_path_factory.mktemp("config")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("FARHAND_")]:
            patch.delenv(name)
        patch.setenv("XDG_CONFIG_HOME", str(home))
        yield home


@pytest.fixture(autouse=True, scope="session")
def one_authority(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each HTTP client loads the certificates of all public authorities, which takes as long as starting a
    server. Here nobody is asked who speaks TLS, except by a test that installs packages."""
    with pytest.MonkeyPatch.context() as patch:
        if not any(item.nodeid.startswith("tests/walk/") for item in request.session.items):
            patch.setenv("SSL_CERT_FILE", str(Path(__file__).with_name("authority.pem")))
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL for all tests of this process, if one of them asks for it."""
    with running_cluster() as cluster:
        yield cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks that follow from where a test stands and what it asks for; the tiers choose by them."""
    names = {item.nodeid for item in items}
    for item in items:
        for mark in _marks(item):
            item.add_marker(mark)
        test, bracket, values = item.nodeid.partition("[")
        if "sqlite" in values and f"{test}{bracket}{values.replace('sqlite', 'memory')}" in names:
            item.add_marker("second_store")


def _marks(item: pytest.Item) -> Iterator[str]:
    folder = item.nodeid.split("/")[1]
    if folder in {"browser", "chaos"}:
        yield folder
    if item.nodeid.startswith(REPOSITORY):
        yield "repository"
    module = getattr(item, "module", None)
    callspec = getattr(item, "callspec", None)
    stores = {value for value in (callspec.params.values() if callspec else ()) if isinstance(value, str)}
    has_cluster = "cluster" in getattr(item, "fixturenames", ()) or hasattr(module, "running_cluster")
    if has_cluster or "postgres" in stores or "/postgres/" in item.nodeid:
        yield "postgres"
    if "sqlite" in stores:
        yield "sqlite"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A promise of time that was kept at a later try is no failure, and nothing to be silent about."""
    for report in terminalreporter.getreports("passed"):
        for line in report.capstdout.splitlines():
            if line.startswith(MISSED):
                terminalreporter.write_line(line, yellow=True)
