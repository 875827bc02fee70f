"""Records become lines, and JSON lines become the same records again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.record_input import JsonLines, RecordToSend
from penstock.client.record_output import FormatError, JsonFormat, ReceivedRecord, TemplateFormat, template_of_fields


def received(
    *, key: bytes | None = b"k", value: bytes | None = b"v", headers: tuple[tuple[str, bytes | None], ...] = ()
) -> ReceivedRecord:
    return ReceivedRecord(
        topic="t",
        partition=2,
        offset=7,
        timestamp_ms=1_357_034_400_000,
        timestamp_type="CreateTime",
        key=key,
        value=value,
        headers=headers,
    )


def test_fields_stand_where_the_template_has_them() -> None:
    template = r"{topic}-{partition}@{offset}\t{key}={value} {headers} {time} {timestamp} {{}}"
    line = TemplateFormat(template).format(received(headers=(("a", b"1"), ("b", None))))
    assert line == b"t-2@7\tk=v a=1,b=null 2013-01-01T10:00:00.000Z 1357034400000 {}\n"


def test_columns_are_a_template_with_tabs() -> None:
    assert TemplateFormat(template_of_fields(("offset", "key"))).format(received()) == b"7\tk\n"


def test_bytes_are_written_as_they_are_or_encoded() -> None:
    record = received(value=b"\xff\n")
    assert TemplateFormat("{value}").format(record) == b"\xff\n\n"
    assert TemplateFormat("{value}", encoding="hex").format(record) == b"ff0a\n"
    assert TemplateFormat("{value}", encoding="base64").format(record) == b"/wo=\n"


def test_null_is_written_as_told_and_never_encoded() -> None:
    record = received(key=None, value=b"")
    assert TemplateFormat("{key}|{value}", null=b"-", encoding="hex").format(record) == b"-|\n"


@pytest.mark.parametrize(
    ("template", "sentence"),
    [("{keys}", "no field 'keys'"), ("{", "cannot be read"), ("{key:>3}", "neither"), ("{key!r}", "neither")],
)
def test_template_that_cannot_be_read_is_refused(template: str, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        TemplateFormat(template)


def test_unknown_column_is_refused() -> None:
    with pytest.raises(FormatError, match="no field 'size'"):
        template_of_fields(("key", "size"))


def test_json_is_one_line_with_all_there_is() -> None:
    line = JsonFormat().format(received(key=None, value=b"\xff\n", headers=(("h", b"x"),)))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": "t",
        "partition": 2,
        "offset": 7,
        "timestamp": 1_357_034_400_000,
        "timestamp_type": "CreateTime",
        "key": None,
        "value_base64": "/wo=",
        "headers": [{"key": "h", "value": "x"}],
    }


maybe_bytes = st.none() | st.binary() | st.text().map(str.encode)


@given(maybe_bytes, maybe_bytes, st.lists(st.tuples(st.text(), maybe_bytes)).map(tuple))
def test_json_that_was_written_is_read_as_the_same_record(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    record = received(key=key, value=value, headers=headers)
    assert JsonLines().parse(JsonFormat().format(record)) == RecordToSend(
        key=key, value=value, headers=headers, partition=record.partition, timestamp_ms=record.timestamp_ms
    )
