"""Names of topics, for a shell that completes them."""

import contextlib
import os
from typing import Final

import click
from click.core import ParameterSource
from confluent_kafka import KafkaException

from ..protocol.errors import ConfigError
from .addresses import parse_addresses
from .bootstrap import DEFAULT_BOOTSTRAP, Bootstrap
from .command_config import BOOTSTRAP_SERVERS, load_client_properties
from .command_config import ENVIRONMENT_VARIABLE as COMMAND_CONFIG
from .topics import Topics

# A person who pressed a key waits for it.
_TIMEOUT_S: Final = 1.0


def complete_topics(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topics that begin so. Where no broker answers there is nothing to complete, and no place to say so."""
    del parameter
    with contextlib.suppress(click.ClickException, KafkaException, ConfigError, ValueError):
        path = context.params.get("command_config_path") or os.environ.get(COMMAND_CONFIG)
        properties = load_client_properties(path, {}, environment=os.environ)
        told = properties.pop(BOOTSTRAP_SERVERS, None)
        given = context.params.get("addresses") or DEFAULT_BOOTSTRAP
        # Brokers of the file count where no option names others.
        if told is not None and context.get_parameter_source("addresses") in (None, ParameterSource.DEFAULT):
            given = told
        addresses = parse_addresses(given) if isinstance(given, str) else given
        topics = Topics(Bootstrap(addresses=addresses, timeout_s=_TIMEOUT_S, properties=properties)).list()
        return [topic.name for topic in topics if topic.name.startswith(incomplete)]
    return []
