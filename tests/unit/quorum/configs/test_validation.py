"""What a topic, a group or a subscription may have; the sentences are Apache Kafka's."""

import pytest

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.configs.validation import (
    validate_client_metrics_config,
    validate_group_config,
    validate_topic_config,
)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"no.such": "1"}, "Unknown topic config name: no.such"),
        ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        (
            {"retention.ms": None, "segment.ms": None},
            "Null value not supported for topic configs: retention.ms,segment.ms",
        ),
        (
            {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
            "conflict topic config setting min.compaction.lag.ms (2) > max.compaction.lag.ms (1)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_a_topic_is_refused_what_it_cannot_have(values: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(KafkaError) as refused:
        validate_topic_config(values)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_CONFIG, sentence)


def test_a_topics_configs_are_judged_together_with_what_it_inherits() -> None:
    broker = {"log.cleaner.max.compaction.lag.ms": "10"}
    validate_topic_config({"min.compaction.lag.ms": "10"}, in_effect=broker)
    with pytest.raises(KafkaError, match="conflict topic config setting"):
        validate_topic_config({"min.compaction.lag.ms": "11"}, in_effect=broker)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"nope": "1"}, "Unknown group config name: nope"),
        (
            {"consumer.session.timeout.ms": "1"},
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"streams.num.standby.replicas": "100"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
    ],
)
def test_a_group_is_refused_what_it_cannot_have(values: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(KafkaError) as refused:
        validate_group_config(values)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_CONFIG, sentence)


def test_a_groups_session_outlasts_its_heartbeat() -> None:
    broker = {"group.consumer.max.heartbeat.interval.ms": "60000"}
    with pytest.raises(KafkaError, match="must be greater than consumer"):
        validate_group_config({"consumer.heartbeat.interval.ms": "45000"}, in_effect=broker)


@pytest.mark.parametrize(
    ("values", "code", "sentence"),
    [
        ({"nope": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nope"),
        (
            {"interval.ms": "99"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ({"match": "client_id=["}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=["),
        ({"match": "host=a"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: host=a"),
    ],
)
def test_a_subscription_is_refused_what_it_cannot_have(
    values: dict[str, str | None], code: ErrorCode, sentence: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        validate_client_metrics_config(values)
    assert (refused.value.code, refused.value.message) == (code, sentence)


def test_good_configs_are_accepted() -> None:
    validate_topic_config({"retention.ms": "-1", "cleanup.policy": "compact, delete"})
    validate_group_config({"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "by_duration:PT1H"})
    validate_client_metrics_config({"interval.ms": "1000", "match": "client_id=a.*,client_source_port=9.*"})
