"""Stops a node whose cluster has finalized levels of features that its software does not have."""

from __future__ import annotations

from collections.abc import Callable

from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.features import supported_levels
from ...quorum.metadata.image import MetadataImage


class FeatureGuard:
    """A publisher. Registrations are refused for the same reason, but an older voter could lead without having one."""

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        """Calls `on_failure` with the sentence with which the node must stop."""
        self._on_failure = on_failure

    def publish(self, delta: MetadataDelta, _image: MetadataImage) -> None:
        for name, level in delta.features.items():
            supported = supported_levels(name)
            if level is not None and not supported.min_level <= level <= supported.max_level:
                self._on_failure(
                    f"This cluster has level {level} of the feature {name}, but this software supports {supported}."
                )
