"""Bodies of `/v1/configs`."""

from msgspec import Struct


class ConfigsQuery(Struct, kw_only=True):
    """`keys` are separated by commas; null: all. Documentation is as long as everything else."""

    keys: str | None = None
    documentation: bool = True


class ConfigSynonym(Struct, kw_only=True):
    """A place from which the value could come, the strongest first."""

    name: str
    value: str | None
    source: str


class DescribedConfig(Struct, kw_only=True):
    """A key with its value in effect; of a sensitive one the value is null.

    `default` is null where the key has none, or where nothing is known of it. `update_mode` of a broker's key is
    read-only (needs a restart), per-broker or cluster-wide. `is_penstock`: Apache Kafka does not have the key.
    """

    name: str
    value: str | None
    default: str | None
    type: str
    source: str
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    is_penstock: bool
    update_mode: str | None
    valid_values: str | None
    importance: str | None
    documentation: str | None
    synonyms: list[ConfigSynonym]


class ConfigList(Struct, kw_only=True):
    """The configuration of a topic, a broker, a group and so on. The name of all brokers together is empty."""

    resource_type: str
    resource_name: str
    configs: list[DescribedConfig]


class ConfigChanges(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is `set`, by name, and what is `unset`: all or none. `validate_only` changes nothing."""

    set: dict[str, str] = {}
    unset: list[str] = []
    validate_only: bool = False
