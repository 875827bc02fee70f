"""What a request for a change of metadata has done, as the log tells that this node replays."""

from __future__ import annotations

from ....protocol.ids import TopicId
from ....quorum.metadata.delta import ChangedTopics, MetadataDelta


class WatchedChange:
    """The topics that the request of one name changed, since it is watched."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_certain = True
        """Not after a snapshot: that has the state, and not what made it so."""
        self._topics: dict[TopicId, str] = {}

    @property
    def topics(self) -> ChangedTopics:
        return self._topics

    def on_delta(self, delta: MetadataDelta) -> None:
        """Take in the next change of this node's metadata."""
        if delta.by_change is None:
            self.is_certain = False
        else:
            self._topics.update(delta.by_change.get(self.name, {}))
