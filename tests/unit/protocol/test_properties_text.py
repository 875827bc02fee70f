"""Properties are read as java.util.Properties reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.errors import ConfigError
from penstock.protocol.properties_text import properties_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\nd = 4 \ne\t:\t5", {"a": "1", "b": "2", "c": "3", "d": "4 ", "e": "5"}),
        ("# a=1\n  ! b=2\n\n \t\nc=3#4", {"c": "3#4"}),
        ("a=1\ra=2\r\nb", {"a": "2", "b": ""}),
        ("a==1\nb=:1\nc  = =1", {"a": "=1", "b": ":1", "c": "=1"}),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        (r"a\=b\:c\ d=e\tf\n\u0041\z\\", {"a=b:c d": "e\tf\nAz\\"}),
        (r"a=\#\!\=\:", {"a": "#!=:"}),
        ("=1", {"": "1"}),
        ("\\\na=1", {"a": "1"}),
    ],
)
def test_the_syntax_of_java(text: str, expected: dict[str, str]) -> None:
    assert properties_of(text) == expected


def test_a_broken_escape_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"^Line 2: \\u must be followed by four hexadecimal digits.$"):
        properties_of("a=1\nb=\\u12")


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(one):04x}" for one in text)


_texts = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))


@given(st.dictionaries(_texts, _texts))
def test_what_is_escaped_comes_back(expected: dict[str, str]) -> None:
    assert properties_of("".join(f"{_escaped(k)}={_escaped(v)}\n" for k, v in expected.items())) == expected
