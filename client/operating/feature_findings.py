"""What the doctor says of the levels of features."""

from __future__ import annotations

from collections.abc import Iterator

from ...protocol.rest.features import FeatureList
from .findings import Finding, Severity


def raisable_levels(found: FeatureList) -> dict[str, int]:
    """The highest level that every node supports, of each feature that is below it."""
    return {
        one.name: one.max_level for one in found.features if one.max_level is not None and one.level < one.max_level
    }


def feature_findings(found: FeatureList) -> Iterator[Finding]:
    """Levels that an upgrade left behind, and nodes that do not support a finalized one."""
    for feature in found.features:
        short = [
            f"{node.role} {node.node_id}"
            for node in feature.nodes
            if not node.min_level <= feature.level <= node.max_level
        ]
        if short:
            yield Finding(
                kind="feature-not-supported",
                severity=Severity.DANGER,
                sentence=f"{feature.name} has level {feature.level}, which {', '.join(short)} "
                f"{'does' if len(short) == 1 else 'do'} not support.",
                advice="Install the version of Penstock there that the other nodes run.",
            )
    behind = raisable_levels(found)
    if behind:
        levels = {one.name: one.level for one in found.features}
        named = ", ".join(f"{name} {levels[name]} of {level}" for name, level in behind.items())
        yield Finding(
            kind="features-behind",
            severity=Severity.ADVICE,
            sentence=f"Levels of features are behind what all nodes support: {named}.",
            advice="`penstock features upgrade` raises them, when the old version is not going to be installed again.",
        )
