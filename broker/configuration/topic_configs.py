"""The configuration in effect on this node: what was told at start, what is changed while it runs, and what topics say.

The dynamic configs of this broker, of all brokers and of topics are metadata; `ConfigResolver` follows them (before any
other publisher), and components either read it each time or are notified of changes.
"""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...protocol.errors import ConfigError
from ...quorum.configs.definition import ConfigValue
from ...quorum.configs.effective import BrokerConfigs, defaults_of, parsed
from ...quorum.configs.table import group_configs, topic_configs
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from ...storage.log.rules.config import LogConfig
from .consumer_config import GroupSettings
from .dynamic_configs import load_dynamic
from .node_config import DEFAULTS, NodeConfig

logger = logging.getLogger(__name__)

_LOG_CONFIG_KEYS: Final = {
    field.name: field.name.replace("_", ".") for field in dataclasses.fields(LogConfig) if field.init
}
# Topics with the same configs share one LogConfig. Made anew when there are more kinds than this.
_MAX_LOG_CONFIGS: Final = 1024


class ConfigResolver:
    """A MetadataPublisher; the first, because the others rest on what it says."""

    def __init__(self, node_config: NodeConfig) -> None:
        self.static_config = node_config
        self._default_resource = ConfigResource(ConfigResourceType.BROKER, "")
        self._own_resource = ConfigResource(ConfigResourceType.BROKER, str(node_config.node_id))
        self._listeners: list[Callable[[NodeConfig, NodeConfig], None]] = []
        self.broker_configs = BrokerConfigs(static=node_config.properties, own_defaults=DEFAULTS)
        self.node_config = node_config
        """With the dynamic configs; `properties` are still those of the start."""
        self.in_effect: Mapping[str, str] = {}
        """Every property that is set, statically or dynamically."""
        self._topic_defaults: dict[str, ConfigValue] = {}
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        self._group_defaults: dict[str, ConfigValue] = {}
        self._default_group_settings: GroupSettings | None = None
        self._take_effect()

    def on_change(self, listener: Callable[[NodeConfig, NodeConfig], None]) -> None:
        """Calls `listener(old, new)` whenever dynamic broker configs changed, after they are in effect here."""
        self._listeners.append(listener)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if self._own_resource in delta.configs or self._default_resource in delta.configs:
            self.update(image)

    def update(self, image: MetadataImage) -> None:
        """Takes over the dynamic broker configs of `image`. Those that cannot be are logged and change nothing."""
        old_configs, old = self.broker_configs, self.node_config
        self.broker_configs = self.broker_configs_in(image)
        try:
            self._take_effect()
        except ConfigError as error:
            # They were checked when they were set, by a broker that may have been of another release.
            logger.error("Invalid dynamic configs of this broker, the previous ones stay in effect: %s", error)
            self.broker_configs = old_configs
            return
        for listener in self._listeners:
            listener(old, self.node_config)

    def broker_configs_in(self, image: MetadataImage) -> BrokerConfigs:
        """What is said about this broker in an image that need not be in effect yet."""
        return dataclasses.replace(
            self.broker_configs,
            dynamic=image.configs.of(self._own_resource),
            dynamic_default=image.configs.of(self._default_resource),
        )

    def log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        """What a log of the topic obeys now."""
        values = image.configs.of(ConfigResource(ConfigResourceType.TOPIC, topic))
        kind = frozenset(values.items())
        config = self._log_configs.get(kind)
        if config is None:
            if len(self._log_configs) >= _MAX_LOG_CONFIGS:
                self._log_configs.clear()
            config = self._log_configs[kind] = self._make_log_config(values)
        return config

    def group_settings(self, image: MetadataImage, group_id: str) -> GroupSettings:
        """What a consumer group obeys now."""
        values = image.configs.of(ConfigResource(ConfigResourceType.GROUP, group_id))
        if values:
            return self._make_group_settings(values)
        if self._default_group_settings is None:
            self._default_group_settings = self._make_group_settings({})
        return self._default_group_settings

    @property
    def default_log_config(self) -> LogConfig:
        """What a log of a topic without configs of its own obeys now."""
        return self._make_log_config({})

    def topic_values(self, values: Mapping[str, str]) -> dict[str, ConfigValue]:
        """The value of every key for a topic with these dynamic configs."""
        return {**self._topic_defaults, **parsed(topic_configs(), values)}

    def _take_effect(self) -> None:
        node_config = load_dynamic(self.static_config, self.broker_configs)
        in_effect = self.broker_configs.overlaid()
        self._topic_defaults = defaults_of(topic_configs(), in_effect)
        self._group_defaults = defaults_of(group_configs(), in_effect)
        self._default_group_settings = None
        self.in_effect = in_effect
        self.node_config = dataclasses.replace(
            node_config, properties=self.static_config.properties, warnings=self.static_config.warnings
        )
        self._log_configs.clear()

    def _make_group_settings(self, values: Mapping[str, str]) -> GroupSettings:
        resolved = {**self._group_defaults, **parsed(group_configs(), values)}
        fields: Any = [resolved[f"consumer.{name.replace('_', '.')}"] for name in GroupSettings._fields]
        return GroupSettings(*fields)

    def _make_log_config(self, values: Mapping[str, str]) -> LogConfig:
        return make_log_config(self.topic_values(values))


def make_log_config(resolved: Mapping[str, ConfigValue]) -> LogConfig:
    """From the value of every topic key."""
    fields: dict[str, Any] = {field: resolved[key] for field, key in _LOG_CONFIG_KEYS.items()}
    fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    # Below the least segment.bytes, for tests.
    if resolved["internal.segment.bytes"] is not None:
        fields["segment_bytes"] = resolved["internal.segment.bytes"]
    return LogConfig(**fields)
