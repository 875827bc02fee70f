"""What TLS costs: a stream of records through librdkafka by a listener with TLS, and the same by the plain one.

Each is sent before by both, so that a JVM has compiled what is measured. One partition, `acks=all`. librdkafka needs as
much CPU for TLS as a broker does, on the same machine, so records a second say little; CPU of the broker does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..secured_node import PLAINTEXT, SSL, secured
from ..target import Target
from .stream import stream

_NAMES: Final = {PLAINTEXT: "plain", SSL: "tls"}
_WARM_UPS: Final = 2


def tls(target: Target, *, size_bytes: int, records: int, warm_up_records: int) -> Mapping[str, float | None]:
    """Produce and consume so many records by each listener."""
    with secured(target) as node:

        def run(name: str, count: int) -> Mapping[str, float | None]:
            listener = node.listener(name)
            return stream(
                node.target, size_bytes=size_bytes, batching="default", partitions=1, records=count, through=listener
            )

        for _ in range(_WARM_UPS):
            for name in _NAMES:
                run(name, warm_up_records)
        return {f"{kind}_{key}": value for name, kind in _NAMES.items() for key, value in run(name, records).items()}
