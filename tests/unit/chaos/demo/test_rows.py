"""Rows of the tables become records."""

import json

import pytest

from penstock.chaos.demo.rows import records_of
from penstock.chaos.demo.sources import SOURCES, Source
from penstock.client.positions import timestamp_ms_of
from penstock.protocol.murmur2 import partition_of_key

BY_TOPIC = {source.topic: source for source in SOURCES}


def test_flight_has_its_origin_as_key_and_its_scheduled_minute_as_time() -> None:
    lines = ["origin,tailnum,dep_time,minute,time_hour", "EWR,NA,NA,15,2013-01-01T10:00:00Z"]
    (record,) = records_of(BY_TOPIC["flights"], lines)
    assert record.key == b"EWR"
    assert record.timestamp_ms == timestamp_ms_of("2013-01-01T10:15:00Z")
    assert json.loads(record.value or b"") == {
        "origin": "EWR",
        "tailnum": None,
        "dep_time": None,
        "minute": 15,
        "time_hour": "2013-01-01T10:00:00Z",
    }


def test_numbers_are_numbers_and_codes_are_text() -> None:
    (weather,) = records_of(
        BY_TOPIC["weather"], ["origin,temp,pressure,time_hour", "JFK,39.02,1e3,2013-01-01T06:00:00Z"]
    )
    assert json.loads(weather.value or b"")["pressure"] == 1000
    (plane,) = records_of(BY_TOPIC["planes"], ["tailnum,model,seats", "N1,172,4"])
    assert json.loads(plane.value or b"") == {"tailnum": "N1", "model": "172", "seats": 4}


def test_table_row_has_no_time() -> None:
    (airline,) = records_of(BY_TOPIC["airlines"], ["carrier,name", "9E,Endeavor Air Inc."])
    assert (airline.key, airline.timestamp_ms) == (b"9E", None)


def test_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        list(records_of(BY_TOPIC["airlines"], ["carrier,name", "9E"]))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.topic)
def test_records_of_2013_are_kept_for_ever_and_tables_are_compacted(source: Source) -> None:
    assert source.configs["retention.ms"] == "-1"
    assert (source.configs.get("cleanup.policy") == "compact") == (source.hour_column is None)


def test_airports_go_to_different_partitions() -> None:
    partition_count = BY_TOPIC["flights"].partition_count
    assert len({partition_of_key(key, partition_count) for key in (b"EWR", b"JFK", b"LGA")}) == 3
