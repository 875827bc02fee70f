"""Properties of quotas: how rates are measured, and how many connections a second a node takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from ...quorum.configs.table import broker_configs
from .listener_config import ListenerConfig
from .property_values import PropertyValues

CONNECTION_RATE: Final = "max.connection.creation.rate"
_OF_LISTENER: Final = "listener.name.{}." + CONNECTION_RATE


class QuotaConfig(Struct, frozen=True, kw_only=True):
    """Each field is the Kafka property of that name, unless it says otherwise."""

    # Samples of a rate, and how long each is. Fewer or shorter ones make clients feel a quota sooner.
    quota_window_num: int
    quota_window_size_seconds: int
    # Together the time in which changes of topics may add up that a client did not make.
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int
    max_connection_creation_rate: int
    # listener.name.X.max.connection.creation.rate
    listener_connection_rates: Mapping[str, int]


def load_quotas(values: PropertyValues, listeners: Sequence[ListenerConfig]) -> QuotaConfig:
    """Raises ConfigError."""
    definition = broker_configs()[CONNECTION_RATE]
    rates = {}
    for listener in listeners:
        text = values.properties.get(_OF_LISTENER.format(listener.name.lower()))
        if text is not None:
            rate = definition.parse(text)
            assert isinstance(rate, int)
            rates[listener.name] = rate
    return QuotaConfig(
        quota_window_num=values.integer("quota.window.num"),
        quota_window_size_seconds=values.integer("quota.window.size.seconds"),
        controller_quota_window_num=values.integer("controller.quota.window.num"),
        controller_quota_window_size_seconds=values.integer("controller.quota.window.size.seconds"),
        max_connection_creation_rate=values.integer(CONNECTION_RATE),
        listener_connection_rates=MappingProxyType(rates),
    )
