"""Changing the levels of features. Kafka: `FeatureControlManager`.

UpdateFeatures, versions 0-2 (KIP-584, KIP-778 upgrade types and validation, KIP-1022 one answer for all). Checks, codes
and sentences are those of Apache Kafka 4.3: all updates take effect or none; the response has the first invalid one.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, TypeAlias

from kio.schema.update_features.v1.request import UpdateFeaturesRequest as RequestWithResults
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v1.response import UpdateFeaturesResponse as ResponseWithResults
from kio.schema.update_features.v2.request import UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_THROTTLE
from ..metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    NOT_SUPPORTED,
    SupportedRange,
    loses_metadata,
    supported_levels,
)
from ..metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from ..metadata.records import (
    NO_LEADER,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    SupportedFeature,
)
from .answers import wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .partition_changes import MIN_INSYNC_REPLICAS, partitions_of

UpdateRequest: TypeAlias = RequestWithResults | UpdateFeaturesRequest
UpdateResponse: TypeAlias = ResponseWithResults | UpdateFeaturesResponse


class UpgradeType(IntEnum):
    """What an update may do, by Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    image: MetadataImage, request: UpdateRequest, context: DecisionContext
) -> ControllerResult[UpdateResponse]:
    """Set the levels, all or none. Of a feature that is named twice the last update counts.

    Raises KafkaError(INVALID_UPDATE_VERSION) when one of them cannot be set.
    """
    updates = {update.feature: update for update in request.feature_updates}
    proposed = {**image.features, **{name: int(update.max_version_level) for name, update in updates.items()}}
    for name, update in updates.items():
        try:
            _check(image, context, name, int(update.max_version_level), int(update.upgrade_type), proposed)
        except _RefusedError as reason:
            message = f"The update failed for all features since the following feature had an error: {reason}"
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message) from None
    records: list[MetadataRecord] = []
    for name in updates:
        level = proposed[name]
        if level == image.features.get(name, 0):
            continue
        if name == ELIGIBLE_LEADER_REPLICAS_VERSION:
            records.extend(_config_for_eligible_leaders(image, context) if level else _without_eligible_leaders(image))
        records.append(FeatureLevelRecord(name=name, feature_level=level))
    return ControllerResult(
        records=() if request.validate_only else tuple(records), response=answer(request, ErrorCode.NONE, None)
    )


def answer(request: UpdateRequest, code: ErrorCode, message: str | None) -> UpdateResponse:
    """Return what is answered for all updates; before version 2, also for each of them when they succeed."""
    if isinstance(request, UpdateFeaturesRequest):
        return UpdateFeaturesResponse(throttle_time=NO_THROTTLE, error_code=wire_code(code), error_message=message)
    succeeded = request.feature_updates if code == ErrorCode.NONE else ()
    return ResponseWithResults(
        throttle_time=NO_THROTTLE,
        error_code=wire_code(code),
        error_message=message,
        results=tuple(
            [
                # The name of the code, where its sentence would be.
                UpdatableFeatureResult(feature=update.feature, error_code=wire_code(code), error_message=code.name)
                for update in succeeded
            ]
        ),
    )


class _RefusedError(Exception):
    """Why an update cannot be made; the message is Kafka's sentence."""


def _check(
    image: MetadataImage,
    context: DecisionContext,
    name: str,
    level: int,
    upgrade_type: int,
    proposed: Mapping[str, int],
) -> None:
    prefix = f"Invalid update version {level} for feature {name}. "
    if upgrade_type not in tuple(UpgradeType):
        raise _RefusedError(prefix + "The controller does not support the given upgrade type.")
    if level < 0:
        raise _RefusedError(prefix + "A feature version cannot be less than 0.")
    reason = _why_not_supported(image, context, name, level)
    if reason is not None:
        raise _RefusedError(prefix + reason)
    current = image.features.get(name, 0)
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        raise _RefusedError(
            prefix + "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        raise _RefusedError(prefix + "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_version(current, level, upgrade_type)
    elif name != KRAFT_VERSION:
        _check_dependencies(prefix, name, level, proposed)


def _check_metadata_version(current: int, level: int, upgrade_type: int) -> None:
    if not (level < current and loses_metadata(current, level)):
        return
    prefix = f"Unsupported metadata.version downgrade from {current} to {level}. "
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        raise _RefusedError(prefix + "Unsafe metadata downgrade is not supported in this version.")
    raise _RefusedError(
        prefix + "Refusing to perform the requested downgrade because it might delete metadata information."
    )


def _check_dependencies(prefix: str, name: str, level: int, proposed: Mapping[str, int]) -> None:
    feature = FEATURES.get(name)
    if feature is None:
        raise _RefusedError(f"{prefix}Feature {name} not found.")
    for needed, needed_level in feature.needs.get(level, {}).items():
        if proposed.get(needed, 0) < needed_level:
            raise _RefusedError(
                f"{prefix}{name} could not be set to {level} because it depends on {needed} level {needed_level}"
            )


def _why_not_supported(image: MetadataImage, context: DecisionContext, name: str, level: int) -> str | None:
    """Return which node of the cluster could not live with the level: this one, a broker, another controller."""
    own_id = context.config.node_id
    for what, levels in _supported_by_nodes(image, own_id, name):
        if not levels.min_level <= level <= levels.max_level:
            if levels.max_level == 0:
                return f"{what} does not support this feature."
            return f"{what} only supports versions {levels}"
    for voter_id in context.config.voter_ids:
        if voter_id != own_id and voter_id not in image.controllers:
            return f"controller {voter_id} has not registered, and may not support this feature"
    return None


def _supported_by_nodes(image: MetadataImage, own_id: NodeId, name: str) -> Iterator[tuple[str, SupportedRange]]:
    yield f"Local controller {own_id}", supported_levels(name)
    for broker in image.brokers.values():
        yield f"Broker {broker.id}", levels_of(broker.features, name)
    for controller in image.controllers.values():
        if controller.id != own_id:
            yield f"Controller {controller.id}", levels_of(controller.features, name)


def levels_of(features: tuple[SupportedFeature, ...], name: str) -> SupportedRange:
    for feature in features:
        if feature.name == name:
            return SupportedRange(feature.min_supported_version, feature.max_supported_version)
    return NOT_SUPPORTED


def _config_for_eligible_leaders(image: MetadataImage, context: DecisionContext) -> Iterator[MetadataRecord]:
    """Yield what makes one `min.insync.replicas` of the whole cluster, which all must agree on (KIP-966)."""
    if MIN_INSYNC_REPLICAS not in image.configs.of(ConfigResource(ConfigResourceType.BROKER, "")):
        yield _min_insync_replicas("", str(context.config.min_insync_replicas))
    for resource, values in image.configs.by_resource.items():
        if resource.type == ConfigResourceType.BROKER and resource.name and MIN_INSYNC_REPLICAS in values:
            yield _min_insync_replicas(resource.name, None)


def _min_insync_replicas(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=ConfigResourceType.BROKER, resource_name=broker, name=MIN_INSYNC_REPLICAS, value=value
    )


def _without_eligible_leaders(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield what leaves each partition as if there had never been an ELR: its last members stay in the ISR."""
    for topic, index, partition in partitions_of(image, lambda one: bool(one.elr or one.last_known_elr)):
        isr = partition.isr or partition.elr[:1] or partition.last_known_elr[:1]
        assert partition.isr or partition.leader == NO_LEADER, f"{topic.name}-{index} has a leader outside its ISR"
        yield PartitionChangeRecord(
            topic_id=topic.topic_id,
            partition_id=index,
            isr=None if partition.isr else isr,
            elr=() if partition.elr else None,
            last_known_elr=() if partition.last_known_elr else None,
        )


UPDATE_FEATURES: Final = ControllerRequest(ApiKey.UPDATE_FEATURES, update_features)
