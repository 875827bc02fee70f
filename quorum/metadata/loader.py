"""Committed entries to images: the one path by which metadata changes. Kafka: `MetadataLoader`."""

from collections.abc import Iterable
from typing import NamedTuple

from ...protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch
from .delta import MetadataDelta
from .image import EMPTY_IMAGE, MetadataImage
from .publishers import Publishers
from .record_codec import decode_entry
from .records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from .snapshot_records import image_from_chunks
from .topics_delta import ReplayError


class ReadSnapshot(NamedTuple):
    """The image of a snapshot, and what is different in it."""

    delta: MetadataDelta
    image: MetadataImage


class MetadataLoader:
    """Replays the log onto an image and tells the publishers of each change.

    Between BeginTransaction and EndTransaction records nothing is seen outside: the image stays where it was, and takes
    the whole transaction in one step at its end (KIP-868). While `is_catching_up`, entries only gather; `catch_up`
    makes one image of them all.

    Raises CorruptData, UnknownRecord and ReplayError, each with a sentence: state that cannot be replayed cannot be
    served, so the node stops.
    """

    def __init__(self, publishers: Publishers) -> None:
        self._publishers = publishers
        self._delta = MetadataDelta(EMPTY_IMAGE)
        self._transaction: MetadataDelta | None = None
        self._timestamp_ms = 0
        self.image: MetadataImage = EMPTY_IMAGE
        self.offset = -1
        self.epoch = NO_CONTROLLER_EPOCH
        self.is_catching_up = True

    @property
    def is_in_transaction(self) -> bool:
        return self._transaction is not None

    def load_snapshot(self, chunks: Iterable[bytes], *, end_offset: int, epoch: ControllerEpoch) -> None:
        """Replace the image by a snapshot's; what it lacks counts as deleted."""
        self.take_snapshot(self.read_snapshot(chunks, end_offset=end_offset, epoch=epoch))

    def read_snapshot(self, chunks: Iterable[bytes], *, end_offset: int, epoch: ControllerEpoch) -> ReadSnapshot:
        """Return what a snapshot changes, for `take_snapshot` before any other change; costs its size.

        It touches nothing, and may be made beside the loop.
        """
        image = image_from_chunks(chunks, offset=end_offset - 1, epoch=epoch)
        return ReadSnapshot(MetadataDelta.between(self.image, image), image)

    def take_snapshot(self, found: ReadSnapshot) -> None:
        """Replace the image as `read_snapshot` found."""
        delta, image = found
        assert delta.base is self.image, "the image changed since the snapshot was read"
        self._transaction = None
        self.offset, self.epoch, self._timestamp_ms = image.offset, image.epoch, image.timestamp_ms
        self._show(delta, image)

    def load_entry(self, offset: int, epoch: ControllerEpoch, command: bytes) -> None:
        """Replay one committed entry; an empty command is a no-op."""
        if command:
            self._replay(offset, command)
        self.offset, self.epoch = offset, epoch
        if not self.is_catching_up and self._transaction is None:
            self._apply()

    def catch_up(self) -> None:
        """Show what was gathered; from here on every entry shows by itself."""
        if self.is_catching_up:
            self.is_catching_up = False
            if self._transaction is None and self.offset > self.image.offset:
                self._delta.is_gathered = True
                self._apply()

    def _replay(self, offset: int, command: bytes) -> None:
        entry = decode_entry(command)
        for record in entry.records:
            match record:
                case BeginTransactionRecord():
                    if self._transaction is not None:
                        raise ReplayError(f"the entry at offset {offset} begins a transaction inside another")
                    # What gathered before it must not be lost if it is aborted.
                    if not self._delta.is_empty:
                        self._delta.is_gathered = self.is_catching_up
                        self._apply()
                    self._transaction = self._delta
                case EndTransactionRecord() | AbortTransactionRecord():
                    if self._transaction is None:
                        raise ReplayError(f"the entry at offset {offset} ends a transaction that did not begin")
                    self._transaction = None
                    if isinstance(record, AbortTransactionRecord):
                        self._delta = MetadataDelta(self.image)
                case _:
                    self._delta.replay(record)
        self._timestamp_ms = entry.timestamp_ms

    def _apply(self) -> None:
        image = self._delta.apply(offset=self.offset, epoch=self.epoch, timestamp_ms=self._timestamp_ms)
        self._show(self._delta, image)

    def _show(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
        self._delta = MetadataDelta(image)
        self._publishers.publish(delta, image)
