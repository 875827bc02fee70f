"""`/v1/features`: finalized levels of features, and what the nodes support (KIP-584, KIP-778)."""

from __future__ import annotations

from typing import Final

from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse
from kio.static.primitive import i8, i16

from ....protocol.rest.features import Feature, FeatureList, FeatureUpdates, NodeFeature
from ....quorum.decisions.features import UpgradeType
from ....quorum.planning.feature_levels import FeatureLevels, feature_levels, unregistered_controllers
from ..operation import Call, HttpError, Operation
from ..rules.kafka_answers import check

LEVEL_MAX: Final = 32_767
_TYPES: Final = {
    "upgrade": UpgradeType.UPGRADE,
    "safe_downgrade": UpgradeType.SAFE_DOWNGRADE,
    "unsafe_downgrade": UpgradeType.UNSAFE_DOWNGRADE,
}


async def _list(call: Call) -> FeatureList:
    image = call.node.image
    return FeatureList(
        epoch=image.offset,
        features=[_described(one) for one in feature_levels(image)],
        unregistered_controllers=list(unregistered_controllers(image, call.node.config.voters)),
    )


async def _update(call: Call) -> FeatureList:
    assert isinstance(call.body, FeatureUpdates), "the body is required"
    body = call.body
    if not body.levels:
        raise HttpError(400, "Bad Request", "levels names no feature.")
    for name, level in body.levels.items():
        if not 0 <= level <= LEVEL_MAX:
            raise HttpError(400, "Bad Request", f"The level of {name} is from 0 to {LEVEL_MAX}, not {level}.")
    updates = tuple(
        FeatureUpdateKey(feature=name, max_version_level=i16(level), upgrade_type=i8(_TYPES[body.type]))
        for name, level in body.levels.items()
    )
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=body.validate_only)
    answer = await call.node.ask(request, UpdateFeaturesResponse, call.context)
    check(answer.error_code, answer.error_message)
    return await _list(call)


def _described(feature: FeatureLevels) -> Feature:
    return Feature(
        name=feature.name,
        level=feature.level,
        min_level=None if feature.supported is None else feature.supported.min_level,
        max_level=None if feature.supported is None else feature.supported.max_level,
        nodes=[
            NodeFeature(
                node_id=one.node_id,
                role="broker" if one.is_broker else "controller",
                min_level=one.supported.min_level,
                max_level=one.supported.max_level,
            )
            for one in feature.nodes
        ],
    )


OPERATIONS: Final = (
    Operation(
        name="listFeatures",
        method="GET",
        path="/v1/features",
        tag="Features",
        summary="Finalized levels of features, and the levels that the nodes support",
        run=_list,
        answer=FeatureList,
    ),
    Operation(
        name="updateFeatures",
        method="PATCH",
        path="/v1/features",
        tag="Features",
        summary="Raise or lower finalized levels of features, all or none",
        description="As Kafka's UpdateFeatures. Answered with the features as they are then.",
        run=_update,
        body=FeatureUpdates,
        answer=FeatureList,
    ),
)
