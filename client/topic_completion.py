"""Names of topics, for a shell that completes them."""

import contextlib
from typing import Final

import click
from confluent_kafka import KafkaException

from .addresses import parse_addresses
from .bootstrap import DEFAULT_BOOTSTRAP, Bootstrap
from .topics import Topics

# A person who pressed a key waits for it.
_TIMEOUT_S: Final = 1.0


def complete_topics(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topics that begin so. Where no broker answers there is nothing to complete, and no place to say so."""
    del parameter
    given = context.params.get("addresses") or DEFAULT_BOOTSTRAP
    with contextlib.suppress(click.ClickException, KafkaException, ValueError):
        addresses = parse_addresses(given) if isinstance(given, str) else given
        topics = Topics(Bootstrap(addresses=addresses, timeout_s=_TIMEOUT_S, properties={})).list()
        return [topic.name for topic in topics if topic.name.startswith(incomplete)]
    return []
