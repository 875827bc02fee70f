"""Node id check for config resources that only the named node can serve: brokers and loggers."""

import re

from ...protocol.errors import ErrorCode, KafkaError
from ..configuration.topic_configs import ConfigResolver


def check_node_id(resolver: ConfigResolver, name: str, what: str, unexpected: str) -> None:
    """Raises KafkaError INVALID_REQUEST if the resource name is not this node's id.

    Kafka's sentence differs in each place: `what` must be an integer; `unexpected` has {} for this node's id.
    """
    node_id = resolver.node_config.node_id
    asked_for = _integer(name)
    if asked_for is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} must be an integer, but it is: {name}")
    if asked_for != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{unexpected.format(node_id)} received {name}")


def _integer(text: str) -> int | None:
    """As Java's `Integer.parseInt`, which accepts neither spaces nor underscores; None where it fails."""
    # A 32-bit integer has ten digits; leading zeros are legal, 22 of them are enough.
    if re.fullmatch(r"[+-]?[0-9]{1,32}", text) is None:
        return None
    number = int(text)
    return number if -(2**31) <= number < 2**31 else None
