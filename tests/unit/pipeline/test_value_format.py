"""Settings of formats: what contradicts itself is refused with a sentence, and no password is shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.pipeline.records.value_format import ValueFormat

REGISTRY = {"url": "http://registry", "basic.auth.user.info": "ada:hunter2"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"format": "json", "schema": "id BIGINT"},
        {"format": "json", "schema": "id BIGINT", "wire_format": True},
        {"format": "avro", "schema": "trip.avsc"},
        {"format": "avro", "wire_format": True, "registry": REGISTRY},
        {"format": "avro", "wire_format": True, "registry": REGISTRY, "subject": "trips"},
        {"format": "protobuf", "wire_format": True, "schemas": "folder", "message": "trips.Trip"},
    ],
)
def test_settings_that_fit(settings: dict[str, Any]) -> None:
    assert ValueFormat(**settings).format == settings.get("format", "raw")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"schema": "id BIGINT"}, "schema means nothing to format raw"),
        ({"format": "json"}, "format json needs a schema"),
        ({"format": "json", "schema": "a INT", "registry": REGISTRY}, "registry means nothing to format json"),
        ({"format": "avro"}, "format avro without wire_format needs a schema"),
        ({"format": "avro", "schema": "a.avsc", "message": "A"}, "message means nothing to format avro"),
        ({"format": "avro", "schema": "a.avsc", "schemas": "f"}, "schemas means nothing to format avro without wire"),
        ({"format": "avro", "wire_format": True}, "needs either a registry"),
        ({"format": "avro", "wire_format": True, "registry": REGISTRY, "schemas": "f"}, "needs either a registry"),
        ({"format": "avro", "wire_format": True, "schemas": "f", "subject": "s"}, "subject is a registry's"),
        ({"format": "avro", "wire_format": True, "registry": {"user": "x"}}, "registry has 'user'"),
        ({"format": "avro", "wire_format": True, "registry": {"ssl.ca.location": "x"}}, "registry needs a url"),
    ],
)
def test_settings_that_contradict_themselves(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=sentence):
        msgspec.convert(settings, type=ValueFormat)


def test_a_password_is_in_no_repr() -> None:
    value = ValueFormat(format="avro", wire_format=True, registry=REGISTRY)
    assert repr(value) == "ValueFormat(format='avro', wire_format=True)"
