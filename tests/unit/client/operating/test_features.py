"""`penstock features` and what the doctor says of levels, without a cluster."""

from __future__ import annotations

import click
import pytest

from penstock.client.operating.feature_commands import differences, parse_levels
from penstock.client.operating.feature_findings import feature_findings, raisable_levels
from penstock.client.operating.findings import Severity
from penstock.protocol.rest.features import Feature, FeatureList, NodeFeature


def node(node_id: int, max_level: int) -> NodeFeature:
    return NodeFeature(node_id=node_id, role="broker", min_level=0, max_level=max_level)


def features(*found: Feature, unregistered: tuple[int, ...] = ()) -> FeatureList:
    return FeatureList(epoch=7, features=list(found), unregistered_controllers=list(unregistered))


def feature(name: str, level: int, max_level: int | None, *nodes: NodeFeature) -> Feature:
    return Feature(
        name=name, level=level, min_level=None if max_level is None else 0, max_level=max_level, nodes=[*nodes]
    )


def test_only_what_every_node_supports_is_raised() -> None:
    found = features(feature("a", 1, 2), feature("b", 2, 2), feature("c", 0, None))
    assert raisable_levels(found) == {"a": 2}
    (finding,) = feature_findings(found)
    assert (finding.kind, finding.severity) == ("features-behind", Severity.ADVICE)
    assert "a 1 of 2" in finding.sentence
    assert "penstock features upgrade" in finding.advice


def test_a_node_that_does_not_support_a_finalized_level_is_a_danger() -> None:
    (finding,) = feature_findings(features(feature("a", 2, 1, node(1, 2), node(3, 1))))
    assert (finding.kind, finding.severity) == ("feature-not-supported", Severity.DANGER)
    assert finding.sentence == "a has level 2, which broker 3 does not support."


def test_nodes_that_differ_are_named() -> None:
    found = features(feature("a", 1, 1, node(1, 2), node(3, 1)), unregistered=(2,))
    assert differences(found) == [
        "Broker 1 supports 0 to 2 of a.",
        "Controllers that have not registered: 2. Until then no level can be raised.",
    ]


@pytest.mark.parametrize("texts", [["a"], ["a="], ["=1"], ["a=-1"], ["a=x"], ["a=1", "a=2"]])
def test_levels_are_name_and_number_once_each(texts: list[str]) -> None:
    assert parse_levels(["a=1", "b.version=20"]) == {"a": 1, "b.version": 20}
    with pytest.raises(click.UsageError):
        parse_levels(texts)
