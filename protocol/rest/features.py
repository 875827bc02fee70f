"""Bodies of `/v1/features`."""

from typing import Literal

from msgspec import Struct


class NodeFeature(Struct, kw_only=True):
    """The levels of a feature that a registered node supports, both ends included; 0 and 0: none."""

    node_id: int
    role: Literal["broker", "controller"]
    min_level: int
    max_level: int


class Feature(Struct, kw_only=True):
    """`level` is the finalized one, 0 for a feature that is off.

    `min_level` and `max_level` are what all registered nodes support; null where they have no level in common.
    """

    name: str
    level: int
    min_level: int | None
    max_level: int | None
    nodes: list[NodeFeature]


class FeatureList(Struct, kw_only=True):
    """`epoch` rises with every change of the metadata, as Kafka's tools show it.

    No level can be raised while `unregistered_controllers` have not told what they support.
    """

    epoch: int
    features: list[Feature]
    unregistered_controllers: list[int]


class FeatureUpdates(Struct, kw_only=True, forbid_unknown_fields=True):
    """All levels are set, or none.

    `upgrade` lowers no level; a downgrade raises none, and a safe one loses nothing of the metadata (KIP-778).
    """

    levels: dict[str, int]
    type: Literal["upgrade", "safe_downgrade", "unsafe_downgrade"] = "upgrade"
    validate_only: bool = False
