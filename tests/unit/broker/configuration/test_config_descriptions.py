"""What DescribeConfigs says of a broker's keys."""

from __future__ import annotations

from penstock.broker.configuration.config_descriptions import describe_broker
from penstock.broker.configuration.node_config import load
from penstock.broker.configuration.topic_configs import ConfigResolver


def test_a_key_of_penstock_alone_shows_where_its_value_comes_from_but_no_secret() -> None:
    resolver = ConfigResolver(
        load({"node.id": "1", "log.dir.reserve.bytes": "7", "cluster.secret": "0123456789abcdef"})
    )
    wanted = {"log.dir.reserve.bytes", "cluster.secret"}
    shown = {one.name: one for one in describe_broker(resolver, wanted)}
    reserve, secret = shown["log.dir.reserve.bytes"], shown["cluster.secret"]
    assert (reserve.value, [synonym.value for synonym in reserve.synonyms]) == ("7", ["7"])
    assert (secret.value, [synonym.value for synonym in secret.synonyms]) == (None, [None])
    assert secret.is_sensitive
