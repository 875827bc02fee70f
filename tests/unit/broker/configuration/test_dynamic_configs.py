"""Which broker configs may change while the broker runs; see also test_config_answers.py."""

import pytest

from penstock.broker.configuration.dynamic_configs import increment, validate_dynamic_configs
from penstock.broker.configuration.node_config import load
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.configs.effective import BrokerConfigs

STATIC = load({"max.connections.per.ip.overrides": "127.0.0.1:5"})


def validate(values: dict[str, str], *, is_default: bool = False) -> None:
    validate_dynamic_configs(STATIC, BrokerConfigs(static=STATIC.properties), values, is_default=is_default)


@pytest.mark.parametrize(
    ("values", "is_default", "sentence"),
    [
        (
            {"num.partitions": "5", "node.id": "2"},
            False,
            "Cannot update these configs dynamically: [node.id, num.partitions]",
        ),
        (
            {"ssl.key.password": "x"},
            False,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.key.password]",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:9092", "listener.name.a.ssl.key.password": "x"},
            True,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[listener.name.a.ssl.key.password, listeners]",
        ),
        (
            {"max.connections": "x"},
            False,
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            {"listener.name.a.max.connections": "x"},
            False,
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:9099"},
            False,
            "Listeners cannot change while the broker runs; restart it with them.",
        ),
    ],
)
def test_what_may_not_change_is_refused(values: dict[str, str], is_default: bool, sentence: str) -> None:
    with pytest.raises(KafkaError) as refused:
        validate(values, is_default=is_default)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, sentence)


def test_what_may_change_is_judged_together_with_the_properties_of_the_start() -> None:
    validate({"max.connections.per.ip": "0"})
    with pytest.raises(KafkaError, match="can be 0 only when max"):
        validate({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": ""})


def test_the_same_listeners_again_are_no_change() -> None:
    validate({"listeners": "PLAINTEXT://127.0.0.1:9092"})


def test_lists_grow_from_their_default_and_keep_their_order() -> None:
    appended = increment({}, [("log.cleanup.policy", 2, "compact")])
    assert appended == {"log.cleanup.policy": "delete,compact"}
    assert increment(appended, [("log.cleanup.policy", 2, "compact")]) == appended
    assert increment(appended, [("log.cleanup.policy", 3, "delete")]) == {"log.cleanup.policy": "compact"}
    assert increment(appended, [("log.cleanup.policy", 1, None), ("max.connections", 0, "5")]) == {
        "max.connections": "5"
    }


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        ("num.io.threads=16", True),
        ("num.io.threads=17", False),
        ("num.io.threads=4", True),
        ("num.io.threads=3", False),
        ("log.cleaner.threads=2", True),
        ("log.cleaner.threads=3", False),
    ],
)
def test_thread_pools_double_or_halve_at_most(name: str, is_allowed: bool) -> None:
    key, _, value = name.partition("=")
    if is_allowed:
        validate({key: value})
        return
    with pytest.raises(KafkaError) as refused:
        validate({key: value})
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert "the current value" in str(refused.value.message)


def test_the_log_cleaner_has_a_thread_at_least() -> None:
    """From 0 no step of at most double would lead back."""
    with pytest.raises(KafkaError, match="Log cleaner threads should be at least 1") as refused:
        validate({"log.cleaner.threads": "0"})
    assert refused.value.code == ErrorCode.INVALID_REQUEST
