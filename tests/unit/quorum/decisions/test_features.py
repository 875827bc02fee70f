"""UpdateFeatures: which levels the cluster may have, and what a change of them brings with it (KIP-584, KIP-1022)."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest
from kio.schema.controller_registration.v0.request import Feature as ControllerFeature
from kio.schema.errors import ErrorCode as WireErrorCode
from kio.schema.update_features.v1.request import UpdateFeaturesRequest as RequestWithResults
from kio.schema.update_features.v1.response import UpdateFeaturesResponse as ResponseWithResults
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16, i32
from metadata_cluster import Cluster
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.decisions.controllers import register_controller
from penstock.quorum.decisions.features import UpgradeType, update_features
from penstock.quorum.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, FEATURES, SupportedRange
from penstock.quorum.metadata.image import ConfigResource, ConfigResourceType
from penstock.quorum.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    SupportedFeature,
    TopicRecord,
)

ELR, MIN_ISR = ELIGIBLE_LEADER_REPLICAS_VERSION, "min.insync.replicas"
UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
ALL_FAIL = "The update failed for all features since the following feature had an error: "
TOPIC_ID = TopicId(UUID(int=77))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def request(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=i16(level), upgrade_type=i8(kind))
            for name, level, kind in updates
        ),
        validate_only=validate_only,
    )


def refused(cluster: Cluster, *updates: tuple[str, int, int]) -> str:
    with pytest.raises(KafkaError) as caught:
        cluster.decide(update_features, request(*updates))
    assert caught.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert caught.value.message is not None
    assert caught.value.message.startswith(ALL_FAIL)
    return caught.value.message.removeprefix(ALL_FAIL)


def registered(broker_id: int, levels: dict[str, tuple[int, int]]) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=NodeId(broker_id),
        incarnation_id=UUID(int=broker_id),
        broker_epoch=BrokerEpoch(1),
        features=tuple(
            SupportedFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in levels.items()
        ),
    )


def set_config(cluster: Cluster, broker: str, value: str | None) -> None:
    kind = ConfigResourceType.BROKER
    cluster.replay([ConfigRecord(resource_type=kind, resource_name=broker, name=MIN_ISR, value=value)])


def config_of(cluster: Cluster, broker: str) -> str | None:
    return cluster.image.configs.of(ConfigResource(ConfigResourceType.BROKER, broker)).get(MIN_ISR)


def test_a_new_cluster_has_the_initial_levels(cluster: Cluster) -> None:
    assert cluster.image.features == {
        name: feature.initial_level for name, feature in FEATURES.items() if feature.initial_level
    }


@pytest.mark.parametrize("feature", FEATURES.values(), ids=FEATURES)
def test_initial_levels_are_supported(feature: Any) -> None:
    assert feature.supported.min_level <= feature.initial_level <= feature.supported.max_level


def test_levels_go_down_and_up_again(cluster: Cluster) -> None:
    cluster.submit(update_features, request(("transaction.version", 1, SAFE), ("group.version", 0, UNSAFE)))
    assert cluster.image.features["transaction.version"] == 1
    assert "group.version" not in cluster.image.features
    cluster.submit(update_features, request(("transaction.version", 2, UP), ("group.version", 1, UP)))
    assert (cluster.image.features["transaction.version"], cluster.image.features["group.version"]) == (2, 1)


def test_validation_changes_nothing(cluster: Cluster) -> None:
    assert not cluster.decide(update_features, request(("group.version", 0, SAFE), validate_only=True)).records


def test_a_level_that_stays_is_no_record(cluster: Cluster) -> None:
    assert not cluster.decide(update_features, request(("group.version", 1, UP), ("kraft.version", 0, UP))).records


def test_one_wrong_update_stops_all(cluster: Cluster) -> None:
    assert refused(cluster, ("group.version", 0, SAFE), ("transaction.version", 3, UP)) == (
        "Invalid update version 3 for feature transaction.version. Local controller 1 only supports versions 0-2"
    )


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (("group.version", 1, 0), "The controller does not support the given upgrade type."),
        (("group.version", 1, 4), "The controller does not support the given upgrade type."),
        (("group.version", -1, SAFE), "A feature version cannot be less than 0."),
        (("unknown", 1, UP), "Local controller 1 does not support this feature."),
        (("unknown", 0, UP), "Feature unknown not found."),
        (("kraft.version", 1, UP), "Local controller 1 does not support this feature."),
        (
            ("group.version", 0, UP),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        ),
    ],
)
def test_what_cannot_be_is_refused(cluster: Cluster, update: tuple[str, int, int], sentence: str) -> None:
    assert refused(cluster, update) == f"Invalid update version {update[1]} for feature {update[0]}. {sentence}"


def test_a_downgrade_does_not_raise_a_level(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name="transaction.version", feature_level=1)])
    assert refused(cluster, ("transaction.version", 2, UNSAFE)).endswith("Can't downgrade to a newer version.")


def test_metadata_is_not_lost_by_a_downgrade(cluster: Cluster) -> None:
    assert refused(cluster, ("metadata.version", 29, SAFE)) == (
        "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested downgrade because it "
        "might delete metadata information."
    )
    assert refused(cluster, ("metadata.version", 29, UNSAFE)) == (
        "Unsupported metadata.version downgrade from 30 to 29. Unsafe metadata downgrade is not supported in this "
        "version."
    )


def test_metadata_version_goes_down_where_nothing_is_lost(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name="metadata.version", feature_level=29)])
    cluster.submit(update_features, request(("metadata.version", 23, SAFE)))
    assert cluster.image.features["metadata.version"] == 23
    assert "from 23 to 22" in refused(cluster, ("metadata.version", 22, SAFE))


def test_dependencies_are_looked_at_as_they_will_be(cluster: Cluster) -> None:
    cluster.replay(
        [
            FeatureLevelRecord(name="metadata.version", feature_level=22),
            FeatureLevelRecord(name=ELR, feature_level=0),
        ]
    )
    assert refused(cluster, (ELR, 1, UP)) == (
        f"Invalid update version 1 for feature {ELR}. {ELR} could not be set to 1 because it depends on "
        "metadata.version level 23"
    )
    cluster.submit(update_features, request((ELR, 1, UP), ("metadata.version", 23, UP)))
    assert cluster.image.features[ELR] == 1


def test_every_registered_broker_must_support_a_level(cluster: Cluster) -> None:
    cluster.replay([registered(4, {"group.version": (1, 1)}), registered(5, {"group.version": (0, 1)})])
    assert refused(cluster, ("group.version", 0, SAFE)).endswith("Broker 4 only supports versions 1")
    assert refused(cluster, ("transaction.version", 1, SAFE)).endswith("Broker 4 does not support this feature.")


def register(cluster: Cluster, controller_id: int, group_levels: tuple[int, int] = (0, 1)) -> None:
    low, high = group_levels
    levels = {name: feature.supported for name, feature in FEATURES.items()} | {"group.version": (low, high)}
    cluster.submit(
        register_controller,
        ControllerRegistrationRequest(
            controller_id=i32(controller_id),
            incarnation_id=UUID(int=controller_id),
            zk_migration_ready=False,
            listeners=(),
            features=tuple(
                ControllerFeature(name=name, min_supported_version=i16(low), max_supported_version=i16(high))
                for name, (low, high) in levels.items()
            ),
        ),
    )


def test_every_voter_must_have_registered_and_support_a_level(cluster: Cluster) -> None:
    cluster.config = replace(cluster.config, voter_ids=node_ids(1, 2, 3))
    register(cluster, 2)
    assert refused(cluster, ("group.version", 0, SAFE)).endswith(
        "controller 3 has not registered, and may not support this feature"
    )
    register(cluster, 3, (1, 1))
    assert refused(cluster, ("group.version", 0, SAFE)).endswith("Controller 3 only supports versions 1")
    register(cluster, 3)
    cluster.submit(update_features, request(("group.version", 0, SAFE)))


def test_only_voters_that_support_what_is_finalized_can_register(cluster: Cluster) -> None:
    cluster.config = replace(cluster.config, voter_ids=node_ids(1, 2))
    with pytest.raises(KafkaError, match="Node 3 is no voter"):
        register(cluster, 3)
    with pytest.raises(KafkaError, match=r"Controller 2 does not support finalized version 1 of group\.version"):
        register(cluster, 2, (0, 0))


def test_older_clients_hear_of_each_update(cluster: Cluster) -> None:
    response = cluster.submit(
        update_features,
        RequestWithResults(feature_updates=request(("group.version", 1, UP)).feature_updates),  # type: ignore[arg-type]
    )
    assert isinstance(response, ResponseWithResults)
    assert [(one.feature, one.error_code) for one in response.results] == [("group.version", WireErrorCode.none)]


def test_eligible_leaders_need_one_min_insync_replicas(cluster: Cluster) -> None:
    cluster.submit(update_features, request((ELR, 0, SAFE)))
    cluster.config = replace(cluster.config, min_insync_replicas=2)
    set_config(cluster, "", None)
    set_config(cluster, "1", "3")
    cluster.submit(update_features, request((ELR, 1, UP)))
    assert (config_of(cluster, ""), config_of(cluster, "1")) == ("2", None)
    cluster.submit(update_features, request((ELR, 0, SAFE)))
    set_config(cluster, "", "5")
    cluster.submit(update_features, request((ELR, 1, UP)))
    assert config_of(cluster, "") == "5"


@pytest.mark.parametrize(
    ("isr", "elr", "last_known", "after"),
    [((1,), (2,), (), (1,)), ((), (2, 1), (1,), (2,)), ((), (), (3,), (3,))],
)
def test_without_eligible_leaders_a_partition_keeps_a_way_back(
    cluster: Cluster, isr: tuple[int, ...], elr: tuple[int, ...], last_known: tuple[int, ...], after: tuple[int, ...]
) -> None:
    partition = PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=node_ids(1, 2, 3),
        isr=node_ids(*isr),
        leader=NodeId(isr[0] if isr else -1),
        leader_epoch=LeaderEpoch(4),
        partition_epoch=PartitionEpoch(7),
        directories=(UUID(int=500),) * 3,
        elr=node_ids(*elr),
        last_known_elr=node_ids(*last_known),
    )
    cluster.replay([TopicRecord(name="t", topic_id=TOPIC_ID), partition])
    cluster.submit(update_features, request((ELR, 0, SAFE)))
    found = cluster.partition("t")
    assert (found.isr, found.elr, found.last_known_elr, found.leader_epoch) == (after, (), (), 4)


def test_ranges_are_shown_as_in_kafkas_sentences() -> None:
    assert (str(SupportedRange(0, 2)), str(SupportedRange(1, 1))) == ("0-2", "1")
