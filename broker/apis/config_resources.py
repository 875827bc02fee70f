"""Resources of the config APIs that only one broker can answer for."""

from ...protocol.errors import ErrorCode, KafkaError
from ..configuration.topic_configs import ConfigResolver


def check_node_id(resolver: ConfigResolver, name: str, what: str, unexpected: str) -> None:
    """Refuses a resource named for another broker. Raises KafkaError INVALID_REQUEST.

    Kafka words it in another way in each place: `what` must be an integer; `unexpected` has {} for this node's id.
    """
    node_id = resolver.node_config.node_id
    try:
        asked_for = int(name)
        if not -(2**31) <= asked_for < 2**31:
            raise ValueError
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} must be an integer, but it is: {name}") from None
    if asked_for != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{unexpected.format(node_id)} received {name}")
