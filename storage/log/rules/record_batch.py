"""A record batch on its way into a log, a type for each stage (Kafka: `DefaultRecordBatch` in all of them).

Kafka: `MutableRecordBatch`, `FileChannelRecordBatch`.

| type | its bytes | made by |
|---|---|---|
| `ProducedBatch` | as the producer sent them; the header is parsed, the content may be anything | `batch_admission` |
| `ValidatedBatch` | a leader may append them | `batch_validation`, `record_validation` |
| `StoredBatch` | with base offset and leader epoch, as a log has them | `segment_scan`, `replicated_batches` |

A batch carries its header: no later stage parses it again.
"""

from typing import NamedTuple, NewType

from ....protocol.batches import BatchHeader


class ProducedBatch(NamedTuple):
    """Exactly one batch of format v2: length and magic are right, nothing else is checked."""

    data: memoryview
    header: BatchHeader


ValidatedBatch = NewType("ValidatedBatch", ProducedBatch)
"""A batch that was validated for the log that appends it. Kafka: `LogValidator.ValidationResult`."""


class StoredBatch(NamedTuple):
    """A batch at `position` of a segment file or of a fetch response; it is in `buffer` at `offset_in_buffer`."""

    position: int
    header: BatchHeader
    buffer: memoryview
    offset_in_buffer: int

    @property
    def data(self) -> memoryview:
        """The bytes of the whole batch."""
        start = self.offset_in_buffer
        return self.buffer[start : start + self.header.size_bytes]
