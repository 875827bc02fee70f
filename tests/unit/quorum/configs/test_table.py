"""The tables of Kafka's keys."""

import pytest

from penstock.protocol.errors import ConfigError
from penstock.quorum.configs.definition import ConfigType, UpdateMode
from penstock.quorum.configs.effective import broker_definition, defaults_of, is_sensitive
from penstock.quorum.configs.own_keys import BROKER_DRAINED, OWN_KEYS
from penstock.quorum.configs.table import (
    broker_configs,
    client_metrics_configs,
    dynamic_quota_configs,
    group_configs,
    topic_configs,
)

TABLES = (broker_configs(), dynamic_quota_configs(), topic_configs(), group_configs(), client_metrics_configs())


def test_every_key_has_a_readable_default_and_documentation() -> None:
    for table in TABLES:
        assert table.documentation().keys() == table.keys()
        for definition in table.values():
            assert (definition.default_value is None) == (definition.default is None)


def test_the_tables_are_those_of_kafka_4_3_1() -> None:
    assert [len(table) for table in TABLES] == [360, 3, 34, 17, 3]


def test_required_keys_are_those_without_which_kafka_does_not_start() -> None:
    required = [name for name, definition in broker_configs().items() if definition.is_required]
    assert required == ["controller.listener.names", "node.id", "process.roles"]
    with pytest.raises(ConfigError, match=r'^Missing required configuration "node.id" which has no default value.$'):
        broker_configs().value({}, "node.id")


def test_topic_defaults_are_those_of_their_broker_keys() -> None:
    for name, value in defaults_of(topic_configs(), {}).items():
        definition = topic_configs()[name]
        for synonym in definition.synonyms:
            broker_default = broker_configs()[synonym.name].default_value
            if isinstance(broker_default, int) and not isinstance(broker_default, bool):
                broker_default *= synonym.factor
            assert broker_default in (value, None)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("num.partitions", UpdateMode.READ_ONLY),
        ("listeners", UpdateMode.PER_BROKER),
        ("message.max.bytes", UpdateMode.CLUSTER_WIDE),
    ],
)
def test_a_key_tells_who_may_change_it_while_the_broker_runs(name: str, mode: UpdateMode) -> None:
    assert broker_configs()[name].update_mode is mode


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("num.partition", "num.partitions"),
        ("log_dirs", "log.dirs"),
        ("LISTENERS", "listeners"),
        ("auto.create.topic.enable", "auto.create.topics.enable"),
        ("xyzzy", None),
    ],
)
def test_a_mistyped_key_is_recognised(wrong: str, right: str | None) -> None:
    assert broker_configs().nearest(wrong) == right


def test_own_keys_are_dynamic_keys_of_one_broker_whose_value_is_shown() -> None:
    definition = broker_definition(BROKER_DRAINED)
    assert definition is not None
    assert (definition.type, definition.update_mode) == (ConfigType.STRING, UpdateMode.PER_BROKER)
    assert not is_sensitive(BROKER_DRAINED)
    assert not OWN_KEYS.keys() & broker_configs().keys()
