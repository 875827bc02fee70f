"""Texts become values, or are refused, as in Apache Kafka 4.3.1.

`kafka_config_values.jsonl` was captured from Kafka's ConfigDef: one key of every combination of type and limits, and
for each answer (a value after "= ", a refusal after "! ") the texts that get it. null stands for no text.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.errors import ConfigError
from penstock.quorum.configs.definition import ConfigType, format_value, java_text, parse
from penstock.quorum.configs.table import (
    ConfigTable,
    broker_configs,
    client_metrics_configs,
    group_configs,
    topic_configs,
)

TABLES = {
    "broker": broker_configs(),
    "topic": topic_configs(),
    "group": group_configs(),
    "client-metrics": client_metrics_configs(),
}
ROWS = [json.loads(line) for line in Path(__file__).with_name("kafka_config_values.jsonl").read_text().splitlines()]


def answer(table: ConfigTable, name: str, text: str | None) -> str:
    try:
        return f"= {java_text(None) if text is None else format_value(table.parse(name, text))}"
    except ConfigError as error:
        return f"! {error}"


def cases() -> Iterator[tuple[str, str, str | None, str]]:
    for row in ROWS:
        for template, texts in row["values"].items():
            for text in texts:
                expected = template.replace("{name}", row["name"]).replace("{value}", str(text))
                yield row["table"], row["name"], text, expected


def test_every_kind_of_key_reads_texts_as_kafka_does() -> None:
    different = [
        f"{name} {text!r}: Kafka {expected!r}, here {got!r}"
        for table, name, text, expected in cases()
        if text is not None and (got := answer(TABLES[table], name, text)) != expected
    ]
    assert not different, "\n".join(different)


def test_keys_that_must_not_be_null_say_so_as_kafka_does() -> None:
    for table, name, text, expected in cases():
        if text is None and expected.startswith("! "):
            with pytest.raises(ConfigError) as refused:
                TABLES[table].parse(name, None)
            assert str(refused.value) == expected[2:]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0.0"),
        (-0.5, "-0.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (123456.75, "123456.75"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (-2.5e-9, "-2.5E-9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, expected: str) -> None:
    assert java_text(value) == expected


@given(st.floats(allow_nan=False))
def test_a_printed_double_reads_as_itself(value: float) -> None:
    assert parse("a", java_text(value), ConfigType.DOUBLE) == value


@given(st.lists(st.from_regex(r"[a-z0-9:.]+", fullmatch=True)))
def test_a_printed_list_reads_as_itself(items: list[str]) -> None:
    text = format_value(tuple(items))
    assert text is not None
    assert parse("a", text, ConfigType.LIST) == tuple(items)
