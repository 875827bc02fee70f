"""The current metadata image, for handlers: the first of the publishers."""

from __future__ import annotations

from ..quorum.delta import MetadataDelta
from ..quorum.image import EMPTY_IMAGE, MetadataImage


class MetadataView:
    """Holds the newest image. A handler reads `image` once and keeps to it, so that its answer is of one moment."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
