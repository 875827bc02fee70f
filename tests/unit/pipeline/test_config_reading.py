"""A job's config from TOML and assignments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from penstock.pipeline.config import JobConfig
from penstock.pipeline.config_reading import ConfigError, read_config, text_of
from penstock.pipeline.jobs.catalogue import find_job

_ENOUGH: Final[dict[str, Any]] = {"bootstrap": "127.0.0.1:9092", "checkpoint": "/checkpoints"}


class _Config(JobConfig, frozen=True, kw_only=True):
    path: str = ""
    size: int = 1


def _read(text: str = "", **assignments: str) -> _Config:
    return read_config(
        _Config,
        text=text,
        assignments={**_ENOUGH, **{name.replace("__", "."): one for name, one in assignments.items()}},
    )


def test_assignments_win_over_the_file() -> None:
    assert _read("size = 2\npath = 'a'", size="3") == _Config(**_ENOUGH, size=3, path="a")


def test_topics_of_an_assignment_are_separated_by_commas() -> None:
    assert _read(topics="a, b").topics == ("a", "b")
    assert _read("topics = ['a', 'b']").topics == ("a", "b")


def test_properties_of_clients_keep_their_dots() -> None:
    config = _read(
        "[kafka]\nsecurity.protocol = 'SSL'\nrequest.timeout.ms = 5\n'a.b' = true", kafka__ssl__truststore__type="PEM"
    )
    assert config.kafka == {
        "security.protocol": "SSL",
        "request.timeout.ms": "5",
        "a.b": "true",
        "ssl.truststore.type": "PEM",
    }


@pytest.mark.parametrize(
    ("text", "assignments", "message"),
    [
        ("size = 'x'", {}, "`size`: expected `int`, got `str`."),
        ("sise = 1", {}, "no option 'sise'. Did you mean 'size'"),
        ("size = ", {}, "is not TOML"),
        ("topics = ['a']\ntopic_pattern = 'b'", {}, "not both"),
        ("", {"max_offsets_per_trigger": "0"}, "at least 1"),
        ("", {"trigger_interval_ms": "-1"}, "at least 0"),
        ("", {"isolation_level": "none"}, "read_committed or read_uncommitted"),
        ("kafka = 'x'", {"kafka__security__protocol": "SSL"}, "`kafka` is a table, `[kafka]` in the file"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(text: str, assignments: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(text, **assignments)
    assert message in str(caught.value)


def test_what_is_required_is_named() -> None:
    with pytest.raises(ConfigError, match="bootstrap"):
        read_config(_Config, text="", assignments={})


def test_properties_of_clients_are_not_shown() -> None:
    config = _read("[kafka]\nsasl.jaas.config = 'secret'", source_kafka__ssl__key__password="secret", topics="a")
    assert "secret" not in repr(config)
    assert "topics=('a',)" in repr(config)


class _Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    location: str
    size_mb: int = 1
    properties: dict[str, str] = {}


class _PlacedConfig(JobConfig, frozen=True, kw_only=True):
    place: _Place
    other: _Place | None = None


def test_fields_within_a_field_are_named_with_a_dot() -> None:
    config = read_config(
        _PlacedConfig,
        text="[place]\nlocation = 'a'\nsize_mb = 2\nproperties.a.b = 1",
        assignments={**_ENOUGH, "place.size_mb": "3", "place.properties.c.d": "x"},
    )
    assert config.place == _Place(location="a", size_mb=3, properties={"a.b": "1", "c.d": "x"})
    assert config.other is None
    other = read_config(_PlacedConfig, text="", assignments={**_ENOUGH, "place.location": "a", "other.location": "b"})
    assert other.other is not None
    assert other.other.location == "b"
    with pytest.raises(ConfigError, match="locaton"):
        read_config(_PlacedConfig, text="", assignments={**_ENOUGH, "place.locaton": "a"})


def test_a_file_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"job\.toml cannot be read: No such file"):
        text_of(tmp_path / "job.toml")
    (tmp_path / "job.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match=r"job\.toml is not UTF-8"):
        text_of(tmp_path / "job.toml")


@pytest.mark.parametrize(
    ("job", "assignments", "message"),
    [
        ("mirror", {"dead_letter_topic": "bad"}, "here none is bad"),
        ("backfill", {"on_bad_record": "skip"}, "here none is bad"),
        ("backfill", {"partitions": "3", "partitioning": "keep"}, "not of `partitioning` keep"),
    ],
)
def test_an_option_without_effect_is_refused(job: str, assignments: dict[str, str], message: str) -> None:
    """Who has named a topic for bad records takes it that they go there."""
    with pytest.raises(ConfigError) as caught:
        read_config(find_job(job).config_type, text="", assignments={**_ENOUGH, "topics": "a", **assignments})
    assert message in str(caught.value)
