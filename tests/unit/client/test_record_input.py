"""Lines become records, or a sentence."""

import pytest

from penstock.client.record_input import InputError, JsonLines, RecordToSend, TextLines, parse_header


def test_line_without_separator_option_is_a_value() -> None:
    assert TextLines().parse(b"a:1") == RecordToSend(value=b"a:1")


def test_first_separator_divides_key_and_value() -> None:
    assert TextLines(key_separator=b":").parse(b"a:1:2") == RecordToSend(key=b"a", value=b"1:2")


def test_line_without_the_separator_is_refused() -> None:
    with pytest.raises(InputError, match="no key separator ':'"):
        TextLines(key_separator=b":").parse(b"a")


def test_empty_and_null_differ() -> None:
    lines = TextLines(key_separator=b":", null=b"NULL")
    assert lines.parse(b":") == RecordToSend(key=b"", value=b"")
    assert lines.parse(b"NULL:NULL") == RecordToSend(key=None, value=None)


def test_bytes_of_text_lines_are_left_alone() -> None:
    assert TextLines().parse(b"\xff\x00") == RecordToSend(value=b"\xff\x00")


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("{}", RecordToSend()),
        ('{"key": "k", "value": "é"}', RecordToSend(key=b"k", value="é".encode())),
        ('{"key": null, "value": {"a": [1, "é"]}}', RecordToSend(value='{"a":[1,"é"]}'.encode())),
        ('{"value": false, "key": 7}', RecordToSend(key=b"7", value=b"false")),
        ('{"value_base64": "/w=="}', RecordToSend(value=b"\xff")),
        ('{"partition": 3, "timestamp": 5}', RecordToSend(partition=3, timestamp_ms=5)),
        ('{"timestamp": "1970-01-01T00:00:01Z"}', RecordToSend(timestamp_ms=1000)),
        ('{"headers": {"a": "1", "b": null}}', RecordToSend(headers=(("a", b"1"), ("b", None)))),
        (
            '{"headers": [{"key": "a", "value": "1"}, {"key": "a", "value_base64": "/w=="}]}',
            RecordToSend(headers=(("a", b"1"), ("a", b"\xff"))),
        ),
        ('{"topic": "t", "offset": 9, "timestamp_type": "CreateTime"}', RecordToSend()),
    ],
)
def test_json_line_is_read(line: str, record: RecordToSend) -> None:
    assert JsonLines().parse(line.encode()) == record


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"vlaue": "x"}', "no 'vlaue'"),
        ('{"value": "x", "value_base64": "/w=="}', "both there"),
        ('{"key_base64": "?"}', "not base64"),
        ('{"partition": -1}', "not a number from 0"),
        ('{"partition": true}', "not a number from 0"),
        ('{"timestamp": true}', "timestamp True"),
        ('{"timestamp": "soon"}', "timestamp 'soon'"),
        ('{"headers": 3}', "headers are"),
        ('{"headers": [3]}', "a header is"),
    ],
)
def test_line_that_is_no_record_is_refused_with_a_sentence(line: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        JsonLines().parse(line.encode())


def test_header_option_is_divided_at_the_first_equals_sign() -> None:
    assert parse_header("a=b=c") == ("a", b"b=c")
    with pytest.raises(InputError):
        parse_header("a")
