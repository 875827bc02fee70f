"""One look at all partitions of a node, which lasts as long as the metadata do not change."""

from __future__ import annotations

from ....quorum.decisions.context import ControllerConfig
from ....quorum.decisions.partition_changes import election_rules
from ....quorum.metadata.image import MetadataImage
from ..node_ports import NodePorts
from ..rules.health import PartitionProblems, note_topic
from ..turns import Turns


class PartitionLook:
    """Of one node."""

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._problems = PartitionProblems()

    async def look(self, node: NodePorts) -> PartitionProblems:
        image = node.image
        if image is self._image:
            return self._problems
        config = ControllerConfig(node_id=node.node_id, min_insync_replicas=node.config.min_insync_replicas)
        problems = PartitionProblems()
        turns = Turns()
        async for topic in turns.over(image.topics.by_id.values()):
            rules = election_rules(image, topic, config)
            note_topic(problems, image, topic.name, node.node_id, rules.min_insync_replicas)
        self._image, self._problems = image, problems
        return problems
