"""What Python's cyclic garbage collector has to look at: only what is young.

Requests leave no cycles, so the collector may look seldom; what lives for long (modules, the metadata image, the
partitions) is frozen, or each of its looks would take longer with every topic.
"""

from __future__ import annotations

import gc

from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import MetadataImage

THRESHOLDS = (50_000, 20, 100)
"""A look at the young per so many new objects; at the middle-aged per so many of those; at all others likewise."""
LARGE_CHANGE = 10_000
"""Partitions that change at once."""


def begin() -> None:
    """With the first of the node's tasks."""
    gc.set_threshold(*THRESHOLDS)
    gc.enable()


def freeze() -> None:
    """What is there now stays, and is never looked at again.

    It is not collected first: that would keep the first clients waiting for a tenth of the start, and find little.
    """
    gc.freeze()


class FreezeLargeChanges:
    """A MetadataPublisher, behind all others: what they made of a large change is there to stay, too.

    It is not collected first, which would hold up every request: the little garbage that is about stays as well.
    """

    def publish(self, delta: MetadataDelta, _image: MetadataImage) -> None:
        if sum(len(topic.changed) for topic in delta.topics.changed.values()) >= LARGE_CHANGE:
            gc.freeze()
