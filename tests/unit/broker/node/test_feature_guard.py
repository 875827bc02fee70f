"""A node does not go on in a cluster whose features it does not have."""

import pytest

from penstock.broker.node.feature_guard import FeatureGuard
from penstock.protocol.ids import ControllerEpoch
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE
from penstock.quorum.metadata.records import FeatureLevelRecord


@pytest.mark.parametrize(
    ("name", "level", "said"),
    [
        ("group.version", 2, "level 2 of the feature group.version, but this software supports 0-1."),
        ("metadata.version", 6, "level 6 of the feature metadata.version, but this software supports 7-30."),
        ("later.version", 1, "level 1 of the feature later.version, but this software supports 0."),
        ("group.version", 1, ""),
        ("later.version", 0, ""),
    ],
)
def test_a_level_that_this_software_does_not_have_stops_the_node(name: str, level: int, said: str) -> None:
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay(FeatureLevelRecord(name=name, feature_level=level))
    sentences: list[str] = []
    FeatureGuard(sentences.append).publish(delta, delta.apply(offset=0, epoch=ControllerEpoch(1), timestamp_ms=0))
    assert "".join(sentences).endswith(said)
    assert bool(sentences) == bool(said)
