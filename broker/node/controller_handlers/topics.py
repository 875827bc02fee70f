"""Topics that are created and deleted, and more partitions of them."""

from __future__ import annotations

from functools import partial

from ....quorum.decisions.partitions import CREATE_PARTITIONS
from ....quorum.decisions.topics import CREATE_TOPICS, DELETE_TOPICS
from ...apis import topic_permissions, topics
from ...network.handlers import Handlers
from .decided_request import add_decided
from .dependencies import ControllerHandlerDependencies


def register(handlers: Handlers, parts: ControllerHandlerDependencies) -> None:
    controller = parts.controller
    delete_topics = partial(topic_permissions.delete_topics, image=lambda: controller.image)
    add_decided(handlers, parts, CREATE_TOPICS, topics.create_topics_error, topic_permissions.create_topics)
    add_decided(handlers, parts, DELETE_TOPICS, topics.delete_topics_error, delete_topics)
    add_decided(handlers, parts, CREATE_PARTITIONS, topics.create_partitions_error, topic_permissions.create_partitions)
