from __future__ import annotations

import pytest

from farhand.errors import BadSetting
from farhand.models.settings import check_base_url, check_key, check_model, check_timeout, one_line


@pytest.mark.parametrize(
    "address",
    [
        "https://api.example.com/v1",
        "http://127.0.0.1:11434/v1",
        "http://[::1]:8000",
        "http://model_server:8000/v1/",
        "https://user:secret@gateway.example.com/v1?key=1",
    ],
)
def test_a_good_address_stays_as_it_is(address: str) -> None:
    assert check_base_url(address, "base_url") == address


@pytest.mark.parametrize(
    "address",
    [
        "api.example.com/v1",
        "localhost:11434",
        "ftp://example.com",
        "http://",
        "http:///v1",
        "http://[::1",
        "http://[::zz]/",
        "http://host:port/v1",
        "http://host:99999",
        "http://host:0",
        "http://ho st/v1",
        "http://host/v1\n",
        "http://ex..ample",
        "http://-host-",
        "http://bücher.example",
        "\x00",
        "'http://host'",
    ],
)
def test_a_bad_address_is_one_line_that_names_its_setting(address: str) -> None:
    with pytest.raises(BadSetting, match=r"ACME_URL .*is not the address of a model server") as bad:
        check_base_url(address, "ACME_URL")
    assert "\n" not in str(bad.value)


def test_the_password_in_a_bad_address_is_not_shown() -> None:
    with pytest.raises(BadSetting) as bad:
        check_base_url("https://user:secret@", "ACME_URL")
    assert "secret" not in str(bad.value)


@pytest.mark.parametrize("name", ["claude-sonnet-5", "meta/llama-3.1:8b", "hf.co/x/y@main"])
def test_a_good_name_stays_as_it_is(name: str) -> None:
    assert check_model(name, "such") == name


@pytest.mark.parametrize("name", ["", " ", "a b", "claude\n", "\x1b[31mred", "\ud800", "m" * 201])
def test_a_name_that_no_model_has_is_one_line_of_plain_characters(name: str) -> None:
    with pytest.raises(BadSetting, match=r"is not the name of a model\. Example: acme:a-1\.") as bad:
        check_model(name, "acme:a-1")
    assert str(bad.value).isprintable()
    assert len(str(bad.value)) < 200


@pytest.mark.parametrize("key", ["sk-1\n", "sk 1", "schlüssel", "\x00", '"sk"\r'])
def test_a_key_that_no_header_can_carry_is_told_without_it(key: str) -> None:
    with pytest.raises(BadSetting, match="ACME_KEY is not a valid key") as bad:
        check_key(key, "ACME_KEY")
    assert key not in str(bad.value)


def test_what_is_shown_of_a_setting_is_one_short_line() -> None:
    assert one_line("gpt-6") == "gpt-6"
    assert one_line("a\nb") == r"a\nb"
    assert len(one_line("x" * 1_000)) < 100


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "60", None])
def test_a_time_that_is_none_is_a_bad_setting(seconds: object) -> None:
    with pytest.raises(BadSetting, match="timeout_sec must be a number of seconds above 0"):
        check_timeout(seconds)
    assert check_timeout(1.5) == 1.5
