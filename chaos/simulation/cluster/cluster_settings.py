"""What nodes and topics of a simulated cluster are configured with: drawn from the seed, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final

from .profiles import DAMAGE
from .shapes import Shape
from .transactional_load import SETTINGS as TRANSACTION_SETTINGS

DAY_MS: Final = 24 * 3600 * 1000
SEGMENT_BYTES: Final = "internal.segment.bytes"

_TIER_SETTINGS: Final[Mapping[str, str]] = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.url": "simulated:",
    "remote.log.manager.task.interval.ms": "300",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
}
"""Of nodes."""


class ClusterSettings:
    def __init__(self, seed: int, shape: Shape, random: Random) -> None:
        self._has_transactions = shape.has_transactions
        self._has_damage = any(shape.profile.weight(kind) for kind in DAMAGE)
        # Only what is synced is acknowledged, or else no more replicas lose power than may.
        self.is_flushed = len(shape.node_ids) == 1 or random.random() < 0.5
        self.request_timeout_ms = random.choice((3_000, 10_000))
        """Of clients."""
        self.session_ms = random.choice((1_500, 1_500, 3_000, 9_000))
        """Of brokers."""
        self.consumer_session_ms = Random(f"session {seed}").choice((2_000, 6_000))
        self.of_nodes: Mapping[str, str] = self._settings_of_nodes(shape, random)

    def _settings_of_nodes(self, shape: Shape, random: Random) -> dict[str, str]:
        groups = {}
        if shape.has_groups:
            groups = {
                "offsets.topic.num.partitions": "1",
                "group.min.session.timeout.ms": "1000",
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": str(self.consumer_session_ms),
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": "500",
                "group.initial.rebalance.delay.ms": str(random.choice((0, 500))),
            }
        if shape.has_transactions:
            groups |= TRANSACTION_SETTINGS
        if (groups or shape.has_compaction) and self.is_flushed:
            groups["log.flush.interval.messages"] = "1"
        cleaning = {"log.cleaner.backoff.ms": "300", "log.cleaner.min.cleanable.ratio": "0.1"}
        if not shape.has_compaction:
            # Then logs are judged batch by batch.
            cleaning = {"log.cleaner.enable": "false"}
        return {
            **groups,
            **cleaning,
            **(_TIER_SETTINGS if shape.has_tiers else {}),
            **({"log.scrub.interval.ms": "500"} if self._has_damage else {}),
            "broker.session.timeout.ms": str(self.session_ms),
            "broker.heartbeat.interval.ms": str(self.session_ms // 4),
            "replica.lag.time.max.ms": str(random.choice((1_000, 3_000, 10_000))),
            "replica.high.watermark.checkpoint.interval.ms": str(random.choice((500, 5_000))),
            "log.flush.offset.checkpoint.interval.ms": str(random.choice((1_000, 60_000))),
            "log.initial.task.delay.ms": "500",
            "log.retention.check.interval.ms": "500" if shape.has_tiers else "2000",
            "metadata.log.max.record.bytes.between.snapshots": str(random.choice((2_000, 20_971_520))),
        }

    def of_tables(self, seed: int, configs: Mapping[str, str]) -> dict[str, str]:
        """`configs` are the other topics'. A replica that is away for as long as tombstones stay may miss them, and
        markers of transactions with them."""
        random = Random(f"table {seed}")
        return {
            **{name: value for name, value in configs.items() if name not in ("retention.bytes", SEGMENT_BYTES)},
            "cleanup.policy": "compact",
            SEGMENT_BYTES: str(random.choice((1_000, 3_000))),
            "delete.retention.ms": str(DAY_MS if self._has_transactions else random.choice((0, 2_000, DAY_MS))),
            "min.compaction.lag.ms": str(random.choice((0, 0, 1_000))),
        }

    def of_tiered(self, seed: int, configs: Mapping[str, str]) -> dict[str, str]:
        """`configs` are those of a topic that is not compacted."""
        random = Random(f"tiered {seed}")
        return {
            **configs,
            "remote.storage.enable": "true",
            "local.retention.bytes": random.choice(("1", "1000", "4000")),
            SEGMENT_BYTES: random.choice(("1000", "2000", "5000")),
        }

    def of_topics(self, random: Random, *, has_retention: bool) -> dict[str, str]:
        configs = {
            "min.insync.replicas": str(random.choice((1, 2, 2))),
            SEGMENT_BYTES: str(random.choice((2_000, 10_000, 1_000_000))),
            "file.delete.delay.ms": str(random.choice((0, 1_000))),
        }
        if self._has_damage:
            # Only segments that are closed are damaged.
            configs[SEGMENT_BYTES] = str(random.choice((1_000, 2_000, 4_000)))
        if has_retention:
            configs["retention.bytes"] = "10000"
        if self.is_flushed:
            configs["flush.messages"] = "1"
        return configs
