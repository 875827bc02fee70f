"""The publishers of new metadata, called in a fixed order. Kafka: `BrokerMetadataPublisher`."""

from typing import Protocol

from .delta import MetadataDelta
from .image import EMPTY_IMAGE, MetadataImage


class MetadataPublisher(Protocol):
    """A part of the node that follows the metadata."""

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take in a committed change: `image` is the state after `delta`. Called on the loop; must not wait.

        An exception from here is a bug and stops the node: a part that missed a change cannot catch up.
        """


class Publishers:
    """The publishers in the order in which they hear (KIP-500: configs before leadership).

    A publisher that joins receives a first delta from the empty image to the current one, then every change.
    """

    def __init__(self) -> None:
        self._publishers: list[MetadataPublisher] = []
        self._is_closed = False
        self.image: MetadataImage = EMPTY_IMAGE

    def close(self) -> None:
        """Stops publishing, including the delta in progress."""
        self._is_closed = True

    def add(self, publisher: MetadataPublisher) -> None:
        """Let a publisher join behind those that are there."""
        self._publishers.append(publisher)
        if self.image is not EMPTY_IMAGE:
            publisher.publish(MetadataDelta.between(EMPTY_IMAGE, self.image), self.image)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Tell everyone, in order."""
        self.image = image
        for publisher in self._publishers:
            if self._is_closed:
                return
            publisher.publish(delta, image)
