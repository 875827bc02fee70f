"""Finalized levels beside what the registered nodes support."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from penstock.protocol.ids import NodeId
from penstock.quorum.metadata.features import FEATURES
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.records import SupportedFeature
from penstock.quorum.planning.feature_levels import FeatureLevels, feature_levels, unregistered_controllers


def image(*, brokers: dict[int, tuple[int, int]], controllers: dict[int, tuple[int, int]]) -> MetadataImage:
    """An image whose nodes support these levels of `x.version`, whose level is 2."""

    def registered(levels: dict[int, tuple[int, int]]) -> dict[int, SimpleNamespace]:
        return {
            node_id: SimpleNamespace(
                features=(SupportedFeature(name="x.version", min_supported_version=low, max_supported_version=high),)
            )
            for node_id, (low, high) in levels.items()
        }

    made = SimpleNamespace(features={"x.version": 2}, brokers=registered(brokers), controllers=registered(controllers))
    return cast(MetadataImage, made)


def found(image: MetadataImage) -> FeatureLevels:
    return next(one for one in feature_levels(image) if one.name == "x.version")


def test_what_all_nodes_support_is_what_the_least_able_brokers_and_controllers_do() -> None:
    levels = found(image(brokers={1: (0, 3), 2: (1, 4)}, controllers={1: (0, 2)}))
    assert (levels.level, levels.supported) == (2, (1, 2))
    assert [(node.node_id, node.is_broker, tuple(node.supported)) for node in levels.nodes] == [
        (1, True, (0, 3)),
        (2, True, (1, 4)),
        (1, False, (0, 2)),
    ]


def test_nodes_without_a_common_level_support_none() -> None:
    assert found(image(brokers={1: (0, 1), 2: (2, 4)}, controllers={})).supported is None


def test_features_of_this_software_are_there_and_nodes_that_do_not_name_them_support_level_0() -> None:
    levels = {one.name: one for one in feature_levels(image(brokers={1: (0, 3)}, controllers={}))}
    assert set(FEATURES) < set(levels)
    assert levels["group.version"].supported == (0, 0)


def test_voters_that_have_not_registered_are_named() -> None:
    voters = [NodeId(1), NodeId(2), NodeId(3)]
    assert unregistered_controllers(image(brokers={}, controllers={2: (0, 1)}), voters) == (1, 3)
    # The only voter is the active controller, which knows what it supports.
    assert unregistered_controllers(image(brokers={}, controllers={}), voters[:1]) == ()
