"""Changes of the metadata through a real client, with what was acknowledged; and the images on the disks afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from threading import Event
from typing import Final

import cbor2
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from penstock.client import clock
from penstock.client.client_log import SILENT_LOGGER
from penstock.local.cluster import LocalCluster
from penstock.quorum.inspection.stored_metadata import MetadataUnreadable, StoredMetadata, open_folder
from penstock.quorum.metadata.image import ConfigResource as Resource
from penstock.quorum.metadata.image import ConfigResourceType, MetadataImage
from penstock.quorum.metadata.record_codec import encode_record
from penstock.quorum.metadata.snapshot_records import image_records
from penstock.storage.disk.files import DiskFiles

COUNTED: Final = "retention.ms"
FIRST_VALUE: Final = 1_000_000
_TIMEOUT_S: Final = 5.0


class MetadataLoad:
    """Raises a number in the configuration of one topic after the other, from its own thread in a `with` statement.

    `acknowledged` is the last number that was acknowledged for each topic, `count` how many were.

    With `churn`, every tenth change also creates a topic and deletes it.
    """

    def __init__(self, bootstrap: str, topics: Sequence[str], *, churn: str | None = None) -> None:
        self.acknowledged: dict[str, int] = {}
        self.count = 0
        self._topics = topics
        self._churn = churn
        self._is_over = Event()
        self._threads = ThreadPoolExecutor(1)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 5_000}, logger=SILENT_LOGGER)

    def __enter__(self) -> MetadataLoad:
        self._done = self._threads.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.shutdown()
        self._done.result()

    def wait_more(self, changes: int, *, timeout_s: float) -> None:
        """Wait until so many more changes are acknowledged than now."""
        goal = self.count + changes
        done = clock.wait_until(lambda: self.count >= goal or self._done.done(), timeout_s=timeout_s, interval_s=0.02)
        assert done, f"{goal - self.count} of {changes} changes of the metadata not acknowledged within {timeout_s:g} s"
        if self._done.done():
            self._done.result()

    def check(self, cluster: LocalCluster, *, timeout_s: float) -> int:
        """All disks come to the same image, with all that was acknowledged, and have it after a stop, which this is.

        Returns the image's size in bytes.
        """
        images: list[MetadataImage] = []

        def are_as_far() -> bool:
            # Nodes write meanwhile: what cannot be read is replaced just now.
            with suppress(MetadataUnreadable):
                stored = stored_metadata(cluster)
                if len({one.last_offset for one in stored}) == 1:
                    images[:] = [one.image_at().image for one in stored]
                    return True
            return False

        assert clock.wait_until(are_as_far, timeout_s=timeout_s, interval_s=0.2), [
            one.last_offset for one in stored_metadata(cluster)
        ]
        size = self._check_same(images)
        cluster.stop()
        # Those that stop first miss what the others write of it, and a snapshot may be all that one of these has left.
        after_stop: dict[int, list[MetadataImage]] = {}
        stored = stored_metadata(cluster)
        for one in stored:
            after_stop.setdefault(one.last_offset, []).append(one.image_at().image)
        for offset, same in after_stop.items():
            for one in stored:
                if one.last_offset > offset:
                    with suppress(MetadataUnreadable):
                        same.append(one.image_at(offset).image)
        for same in after_stop.values():
            self._check_same(same)
        return size

    def _check_same(self, images: Sequence[MetadataImage]) -> int:
        """They are equal and have all that was acknowledged. Returns their size in bytes."""
        # What is in an image has an order of its own on each node.
        first, *others = [set(map(encode_record, image_records(image))) for image in images]
        for other in others:
            assert [cbor2.loads(record) for record in sorted(first ^ other)] == []
        for topic, number in self.acknowledged.items():
            configs = images[0].configs.of(Resource(ConfigResourceType.TOPIC, topic))
            assert int(configs[COUNTED]) >= number
        return sum(map(len, first))

    def _run(self) -> None:
        for number in count(FIRST_VALUE + 1):
            if self._is_over.is_set():
                return
            topic = self._topics[number % len(self._topics)]
            if alter_topic(self._admin, topic, COUNTED, str(number), timeout_s=_TIMEOUT_S):
                self.acknowledged[topic] = number
                self.count += 1
            if self._churn is not None and number % 10 == 0:
                self._create_and_delete(f"{self._churn}-{number}")

    def _create_and_delete(self, name: str) -> None:
        try:
            self._admin.create_topics([NewTopic(name, 1, 1)], request_timeout=_TIMEOUT_S)[name].result(_TIMEOUT_S + 1)
            self._admin.delete_topics([name], request_timeout=_TIMEOUT_S)[name].result(_TIMEOUT_S + 1)
        except (KafkaException, TimeoutError):
            # A fault was quicker; both may have happened.
            return


def alter_topic(admin: AdminClient, topic: str, key: str, value: str, *, timeout_s: float) -> bool:
    """Set one configuration of a topic; false when it was not acknowledged, and may have happened."""
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    try:
        admin.incremental_alter_configs([resource], request_timeout=timeout_s)[resource].result(timeout_s + 1)
    except (KafkaException, TimeoutError):
        return False
    return True


def stored_metadata(cluster: LocalCluster) -> list[StoredMetadata]:
    """The metadata on the disk of each node."""
    return [open_folder(DiskFiles(), str(node.data)) for node in cluster.nodes.values()]
