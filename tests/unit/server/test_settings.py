"""The sources of a setting, their precedence, and the error for an invalid value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from farhand.core.settings import ChatRules, Settings
from farhand.errors import BadSetting
from farhand.server.settings import load_settings
from farhand.server.settings_shape import known_settings
from tests.requirement import requirement

REFERENCE = Path(__file__).resolve().parents[3] / "docs/reference/settings.md"


@pytest.fixture(autouse=True)
def nobodys_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No settings but those of the test; the folder a settings file is looked for in."""
    monkeypatch.setattr("os.environ", {"XDG_CONFIG_HOME": str(tmp_path)})
    home = tmp_path / "farhand"
    home.mkdir()
    return home


def refusal(**arguments: object) -> str:
    with pytest.raises(BadSetting) as refused:
        load_settings(arguments)
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence


@requirement("settings:precedence")
def test_without_settings_the_defaults_apply() -> None:
    read = load_settings({})
    assert (read.host, read.port, read.store, read.model, read.token, read.open) == (
        "127.0.0.1", 8787, None, None, None, False,
    )  # fmt: skip
    assert read.settings == Settings()


@requirement("settings:precedence")
def test_arguments_win_over_variables_and_those_over_the_file(
    nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nobodys_home / "config.toml").write_text(
        'port = 1\nhost = "localhost"\nmodel = "a:b"\n[timeouts]\nhold_for = 1\nlease = 7\n'
    )
    monkeypatch.setenv("FARHAND_PORT", "2")
    monkeypatch.setenv("FARHAND_MODEL", "c:d")
    monkeypatch.setenv("FARHAND_TIMEOUTS__HOLD_FOR", "2")
    monkeypatch.setenv("FARHAND_LIMITS__MAX_STEPS", "9")
    read = load_settings({"port": "3", "hold_for": "3"})
    assert (read.port, read.model, read.host) == (3, "c:d", "localhost")
    assert (read.settings.timeouts.hold_for, read.settings.timeouts.lease) == (3.0, 7.0)
    assert read.settings.limits.max_steps == 9


@requirement("settings:precedence")
def test_an_alias_in_a_variable_wins_over_the_full_name_in_a_file(
    nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nobodys_home / "config.json").write_text('{"timeouts": {"hold_for": 1}}')
    monkeypatch.setenv("FARHAND_HOLD_FOR", "0")
    assert load_settings({}).settings.timeouts.hold_for == 0.0


@requirement("settings:precedence")
def test_a_variable_for_one_setting_wins_over_that_of_its_section_in_any_letter_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FARHAND_LIMITS", '{"max_steps": 3, "title": 40}')
    monkeypatch.setenv("farhand_limits__title", "50")
    limits = load_settings({}).settings.limits
    assert (limits.max_steps, limits.title) == (3, 50)


@requirement("settings:precedence")
def test_lists_come_from_options_from_a_variable_with_commas_and_from_a_file(
    nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nobodys_home / "config.toml").write_text('allow_host = ["a.example", "b.example"]\n')
    monkeypatch.setenv("FARHAND_ALLOW_HEADER", "X-Tenant, X-Trace")
    monkeypatch.setenv("FARHAND_ALLOW_ORIGIN", "http://a.example, http://b.example,")
    read = load_settings({})
    assert read.allow_host == ("a.example", "b.example")
    assert read.allow_origin == ("http://a.example", "http://b.example")
    assert read.allow_header == ("X-Tenant", "X-Trace")
    assert load_settings({"allow_header": ["X-Other"]}).allow_header == ("X-Other",)
    assert load_settings({"allow_origin": ["http://c.example"]}).allow_origin == ("http://c.example",)


@requirement("ack:hold")
def test_the_default_wait_of_a_chat_comes_from_a_file_or_a_variable(
    nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nobodys_home / "config.toml").write_text('[chat]\nwait = "hold"\n')
    assert load_settings({}).settings.chat.wait == "hold"
    monkeypatch.setenv("FARHAND_CHAT__WAIT", "turn")
    assert load_settings({}).settings.chat.wait == "turn"


@requirement("ack:hold")
def test_an_unknown_default_wait_is_an_error_in_every_source(
    nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nobodys_home / "config.toml").write_text('[chat]\nwait = "held"\n')
    assert refusal().endswith("config.toml: chat.wait: expected 'turn' or 'hold', got 'held'.")
    monkeypatch.setenv("FARHAND_CHAT__WAIT", "forever")
    assert refusal() == "FARHAND_CHAT__WAIT: expected 'turn' or 'hold', got 'forever'."
    with pytest.raises(BadSetting, match=r"chat.wait must be 'turn' or 'hold', not 'held'\."):
        # a program without a type checker
        ChatRules(wait="held")  # type: ignore[arg-type]


@requirement("settings:precedence")
def test_a_named_file_is_read_instead_of_the_users_own(
    nobodys_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nobodys_home / "config.toml").write_text("port = 1\n")
    other = tmp_path / "other.json"
    other.write_text('{"port": 2}')
    assert load_settings({}, config=str(other)).port == 2
    monkeypatch.setenv("FARHAND_CONFIG", str(other))
    assert load_settings({}).port == 2


def test_an_empty_variable_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARHAND_STORE", "")
    assert load_settings({}).store is None


def test_what_kubernetes_sets_for_a_service_named_farhand_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FARHAND_PORT", "tcp://10.0.0.7:8787")
    monkeypatch.setenv("FARHAND_SERVICE_HOST", "10.0.0.7")
    monkeypatch.setenv("FARHAND_PORT_8787_TCP_ADDR", "10.0.0.7")
    assert load_settings({}).port == 8787


def test_the_settings_of_client_tool_servers_are_read_in_milliseconds(nobodys_home: Path) -> None:
    file = nobodys_home / "config.json"
    file.write_text('{"clientTools": {"defaultTimeout": 45000, "keepaliveInterval": 500}}')
    timeouts = load_settings({}).settings.timeouts
    assert (timeouts.client_call, timeouts.client_ping) == (45.0, 0.5)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('{"clientTools": 3}', "clientTools must be an object"),
        ('{"clientTools": {"timeout": 3}}', "no setting 'clientTools.timeout'"),
        ('{"clientTools": {"defaultTimeout": "3"}}', "clientTools.defaultTimeout must be a number"),
        ('{"clientTools": {"defaultTimeout": true}}', "clientTools.defaultTimeout must be a number"),
        ('{"clientTools": {"defaultTimeout": 0}}', "timeouts.client_call: expected more than 0"),
        (
            '{"clientTools": {"defaultTimeout": 1000}, "timeouts": {"client_call": 2}}',
            "clientTools.defaultTimeout and timeouts.client_call have different values",
        ),
    ],
)
def test_an_invalid_setting_of_theirs_is_one_sentence(said: str, answer: str, nobodys_home: Path) -> None:
    file = nobodys_home / "config.json"
    file.write_text(said)
    sentence = refusal()
    assert answer in sentence
    assert str(file) in sentence


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"port": "http"}, "--port: expected a whole number, got 'http'."),
        ({"port": "65536"}, "--port: expected at most 65535, got '65536'."),
        ({"port": "-1"}, "--port: expected at least 0, got '-1'."),
        ({"hold_for": "soon"}, "--hold-for: expected a number, got 'soon'."),
        ({"hold_for": "-1"}, "--hold-for: expected at least 0, got '-1'."),
        ({"hold_for": "inf"}, "--hold-for: expected at most 316224000, got 'inf'."),
        ({"host": ""}, "--host: expected some text, got ''."),
        ({"store": ""}, "--store: expected some text, got ''."),
    ],
)
def test_a_bad_argument_names_its_option(arguments: dict[str, object], answer: str) -> None:
    assert refusal(**arguments) == answer


@pytest.mark.parametrize(
    ("variable", "value", "answer"),
    [
        ("FARHAND_PORT", "http", "FARHAND_PORT: expected a whole number, got 'http'."),
        ("FARHAND_PROT", "1", "FARHAND_PROT: there is no such setting. Did you mean FARHAND_PORT?"),
        ("FARHAND_OPEN", "perhaps", "FARHAND_OPEN: expected true or false, got 'perhaps'."),
        ("FARHAND_HOLD_FOR", "x", "FARHAND_HOLD_FOR: expected a number, got 'x'."),
        ("FARHAND_TIMEOUTS__LEASE", "0", "FARHAND_TIMEOUTS__LEASE: expected more than 0, got '0'."),
        ("FARHAND_TIMEOUTS__LEESE", "1", "Did you mean FARHAND_TIMEOUTS__LEASE?"),
        ("FARHAND_TIMEOUTS", "{", "FARHAND_TIMEOUTS: expected JSON."),
        ("FARHAND_TIMEOUTS", '{"leese": 1}', "no setting 'timeouts.leese'. Did you mean timeouts.lease?"),
        ("FARHAND_LIMITS", "[]", "FARHAND_LIMITS: expected a table of settings, got []."),
        ("FARHAND_LIMITS", "[" * 100_000, "FARHAND_LIMITS: expected JSON."),
        ("FARHAND_COLOUR", "red", "docs/reference/settings.md lists them all."),
    ],
)
def test_a_bad_variable_is_named(
    variable: str, value: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert answer in refusal()


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("port = true", "port: expected a number, not true or false, got True."),
        ("port = 1.5", "port: expected a whole number, got 1.5."),
        ("prot = 1", "there is no setting 'prot'. Did you mean port?"),
        ("store = 3", "store: expected text, got 3."),
        ("open = 'perhaps'", "open: expected true or false, got 'perhaps'."),
        ("allow_origin = 3", "allow_origin: expected a list, got 3."),
        ("allow_origin = ['http://a.example', 3]", "allow_origin: expected text, got 3."),
        ("timeouts = 3", "timeouts: expected a table of settings, got 3."),
        ("hold_for = 3\ntimeouts = 3", "timeouts: expected a table of settings, got 3."),
        ("[timeouts]\nhold_for = nan", "timeouts.hold_for: expected"),
        (
            "[timeouts]\nhodl_for = 1",
            "there is no setting 'timeouts.hodl_for'. Did you mean timeouts.hold_for?",
        ),
        ("hold_for = 1\n[timeouts]\nhold_for = 2", "hold_for and timeouts.hold_for are the same setting."),
        ("[limits]\nmax_steps = 0", "limits.max_steps: expected at least 1, got 0."),
        ("port = x", "cannot be read: Invalid value (at line 1, column 8)."),
    ],
)
def test_a_bad_line_of_a_file_is_named_with_its_file(said: str, answer: str, nobodys_home: Path) -> None:
    file = nobodys_home / "config.toml"
    file.write_text(said)
    sentence = refusal()
    assert answer in sentence
    assert str(file) in sentence


def test_a_bad_token_is_not_repeated(nobodys_home: Path) -> None:
    (nobodys_home / "config.toml").write_text("token = 1234567890\n")
    sentence = refusal()
    assert "token: expected text" in sentence
    assert "1234567890" not in sentence


@pytest.mark.parametrize(
    ("name", "content", "answer"),
    [
        ("bad.json", b'{"port": 1', "line 1 column 11"),
        ("list.json", b"[]", "must contain one object"),
        ("deep.json", b"[" * 100_000, "cannot be read"),
        ("bytes.toml", b"\xff\xfe", "cannot be read"),
        ("config.yaml", b"port: 1", "has an unknown format. Use .toml or .json."),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(
    name: str, content: bytes, answer: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(BadSetting, match=re.escape(answer)):
        load_settings({}, config=str(file))


def test_a_file_that_is_not_there_or_there_twice_is_one_sentence(nobodys_home: Path) -> None:
    with pytest.raises(BadSetting, match="There is no settings file"):
        load_settings({}, config="nowhere.toml")
    (nobodys_home / "config.toml").touch()
    (nobodys_home / "config.json").touch()
    assert "two settings files" in refusal()


@pytest.mark.parametrize("home", ["~no-such-user/.config", "long" * 100])
def test_a_home_that_is_unknown_or_cannot_be_read_has_no_settings_file(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", home)
    assert load_settings({}).port == 8787
    with pytest.raises(BadSetting, match="There is no settings file"):
        load_settings({}, config=f"{home}/config.toml")


@requirement("settings:reference")
def test_every_setting_is_in_the_reference_with_its_variable_and_default() -> None:
    rows = [line for line in REFERENCE.read_text().splitlines() if line.startswith("| `")]
    listed = {tuple(cell.strip(" `") for cell in row.split("|")[1:4]) for row in rows}
    assert listed == {
        (setting.name, setting.variable, as_written(setting.default)) for setting in known_settings()
    }


def as_written(default: object) -> str:
    if default is None or default == ():
        return "–"
    if isinstance(default, tuple):
        return ", ".join(default)
    if isinstance(default, bool):
        return str(default).lower()
    return (
        f"{default:g}"
        if isinstance(default, float) and default < 100_000
        else str(default).removesuffix(".0")
    )
