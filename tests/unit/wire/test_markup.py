"""JSON in attributes and text between tags, read back by real parsers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farhand.errors import Misuse
from farhand.wire.markup import TagEscaper, attribute, cdata, escape_stream_text

fuzz = settings(max_examples=150, deadline=None)
NAMES = ("meta_init", "content-block-text", "content-block-thinking", "!--")
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=6,
)
tag_like = st.lists(
    st.sampled_from(
        ["<", "/", "</", "meta", "_init", "META_INIT", "content-block-", "text", "think", "ing", "!-", "-"]
    )
    | st.text(max_size=3),
    max_size=10,
).map("".join)


def escape_whole(text: str) -> str:
    escaper = TagEscaper(NAMES)
    return escaper.feed(text) + escaper.flush()


class FirstTag(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.data: str | None = None
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.data = dict(attrs)["data"]


@fuzz
@given(json_value)
def test_an_xml_and_an_html_parser_give_back_the_same_json(value: object) -> None:
    markup = f'<meta_init data="{attribute(value)}"></meta_init>'
    from_xml = ET.fromstring(markup).attrib["data"]
    assert markup.isascii()
    assert json.loads(from_xml) == value
    assert FirstTag(markup).data == from_xml


def test_an_attribute_is_compact_and_cannot_be_left() -> None:
    assert attribute([{"id": '"><x>&\'"', "n": 1}]) == (
        "[{&quot;id&quot;:&quot;\\&quot;&gt;&lt;x&gt;&amp;&#x27;\\&quot;&quot;,&quot;n&quot;:1}]"
    )
    assert attribute("é\n\x7f\ud800") == "&quot;\\u00e9\\n\\u007f\\ud800&quot;"


def test_an_attribute_never_holds_what_is_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        attribute(float("nan"))


@fuzz
@given(st.text("\\nr\n\ra<", max_size=12) | st.text(max_size=12))
def test_streamed_text_is_one_line_that_can_be_read_back(text: str) -> None:
    line = escape_stream_text(text)
    assert "\n" not in line
    assert "\r" not in line
    back = re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r", "\\": "\\"}[found[1]], line, flags=re.DOTALL)
    assert back == text


@fuzz
@given(st.text("]>[<!CDATA&a\n", max_size=20) | st.text(st.characters(codec="utf-8"), max_size=20))
def test_an_xml_parser_gives_back_what_a_cdata_section_holds(text: str) -> None:
    expected = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", text)
    # an XML parser reads every line end as a line feed
    expected = expected.replace("\r\n", "\n").replace("\r", "\n")
    assert (ET.fromstring(f"<r>{cdata(text)}</r>").text or "") == expected


def test_a_cdata_section_stays_readable_with_half_a_character_in_it() -> None:
    assert cdata("a\ud800b]]>") == "<![CDATA[a\ufffdb]]]]><![CDATA[>]]>"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<meta_init data=1>", "&lt;meta_init data=1>"),
        ("</meta_init>", "&lt;/meta_init>"),
        ("<<Meta_INIT", "<&lt;Meta_INIT"),
        ("a < b <p>&lt; <meta <metal", "a < b <p>&lt; <meta <metal"),
        ("<!-- x <content-block-textual>", "&lt;!-- x &lt;content-block-textual>"),
        ("<meta_\u0130nit> <\u212a>", "<meta_\u0130nit> <\u212a>"),
    ],
)
def test_only_what_looks_like_one_of_the_tags_is_escaped(text: str, escaped: str) -> None:
    assert escape_whole(text) == escaped


@fuzz
@given(tag_like, st.lists(st.integers(0, 60)))
def test_text_in_pieces_is_escaped_like_the_whole_text(text: str, places: list[int]) -> None:
    ends = sorted({min(place, len(text)) for place in places} | {len(text)})
    escaper = TagEscaper(NAMES)
    sent = "".join(escaper.feed(text[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True))
    assert len(sent.replace("&lt;", "<")) + escaper.held <= len(text)
    assert sent + escaper.flush() == escape_whole(text)
    assert not re.search("</?(meta_init|content-block-text|content-block-thinking|!--)", sent, re.IGNORECASE)


def test_only_an_end_that_may_become_a_tag_is_held_back() -> None:
    escaper = TagEscaper(NAMES)
    assert escaper.feed("if a <") == "if a "
    assert escaper.held == 1
    assert escaper.feed(" b, </cont") == "< b, "
    assert escaper.feed("ent-block-") == ""
    assert escaper.held == len("</content-block-")
    assert escaper.feed("textile") == "&lt;/content-block-textile"
    assert escaper.feed("<met") + escaper.flush() == "<met"
    assert escaper.flush() == ""


def test_a_name_that_begins_another_is_decided_at_once() -> None:
    escaper = TagEscaper(["meta", "meta_init"])
    assert escaper.feed("<meta_in") == "&lt;meta_in"
    assert escaper.feed("<meta") == "&lt;meta"


@pytest.mark.parametrize("names", [[], [""], ["<meta"], ["/meta"], ["méta"]])
def test_what_names_no_tag_is_refused(names: list[str]) -> None:
    with pytest.raises(Misuse, match="not tag names"):
        TagEscaper(names)
