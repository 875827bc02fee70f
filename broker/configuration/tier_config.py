"""Properties of tiered storage (KIP-405)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...protocol.errors import ConfigError
from .penstock_keys import REMOTE_LOG_STORAGE_URL
from .property_values import PropertyValues

METADATA_PREFIX: Final = "remote.log.metadata.manager.impl.prefix"
METADATA_TOPIC_DEFAULTS: Final = {"num.partitions": 50, "replication.factor": 3, "retention.ms": -1}
"""Kafka's keys of its topic-based metadata manager, behind `rlmm.config.remote.log.metadata.topic.`."""


class TierConfig(Struct, frozen=True, kw_only=True):
    """Each field is the Kafka property of that name behind `remote.log.` or `remote.`, unless it says otherwise."""

    # remote.log.storage.system.enable
    is_enabled: bool
    # See `penstock_keys`.
    storage_url: str
    task_interval_ms: int
    copier_thread_pool_size: int
    expiration_thread_pool_size: int
    reader_threads: int
    reader_max_pending_tasks: int
    fetch_max_wait_ms: int
    # remote.list.offsets.request.timeout.ms
    list_offsets_timeout_ms: int
    index_file_cache_total_size_bytes: int
    copy_max_bytes_per_second: int
    copy_quota_window_num: int
    copy_quota_window_size_seconds: int
    fetch_max_bytes_per_second: int
    fetch_quota_window_num: int
    fetch_quota_window_size_seconds: int
    # rlmm.config.remote.log.metadata.topic.*
    metadata_partition_count: int
    metadata_replication_factor: int
    # Whether that was not set, and so is as many as there are brokers when these are fewer.
    is_replication_factor_capped: bool
    metadata_retention_ms: int


def load_tier(values: PropertyValues) -> TierConfig:
    """Raises ConfigError."""
    is_enabled = values.boolean("remote.log.storage.system.enable")
    url = (values.text_or_none(REMOTE_LOG_STORAGE_URL) or "").strip()
    if is_enabled and not url:
        raise ConfigError(
            f"remote.log.storage.system.enable is true, so {REMOTE_LOG_STORAGE_URL} must say where the tier is: "
            "s3://bucket/path, gs://bucket/path, az://container/path, or file:///a/folder/that/all/brokers/share."
        )
    topic = {name: _metadata_number(values, name) for name in METADATA_TOPIC_DEFAULTS}
    return TierConfig(
        is_enabled=is_enabled,
        storage_url=url,
        task_interval_ms=values.integer("remote.log.manager.task.interval.ms"),
        copier_thread_pool_size=values.integer("remote.log.manager.copier.thread.pool.size"),
        expiration_thread_pool_size=values.integer("remote.log.manager.expiration.thread.pool.size"),
        reader_threads=values.integer("remote.log.reader.threads"),
        reader_max_pending_tasks=values.integer("remote.log.reader.max.pending.tasks"),
        fetch_max_wait_ms=values.integer("remote.fetch.max.wait.ms"),
        list_offsets_timeout_ms=values.integer("remote.list.offsets.request.timeout.ms"),
        index_file_cache_total_size_bytes=values.integer("remote.log.index.file.cache.total.size.bytes"),
        copy_max_bytes_per_second=values.integer("remote.log.manager.copy.max.bytes.per.second"),
        copy_quota_window_num=values.integer("remote.log.manager.copy.quota.window.num"),
        copy_quota_window_size_seconds=values.integer("remote.log.manager.copy.quota.window.size.seconds"),
        fetch_max_bytes_per_second=values.integer("remote.log.manager.fetch.max.bytes.per.second"),
        fetch_quota_window_num=values.integer("remote.log.manager.fetch.quota.window.num"),
        fetch_quota_window_size_seconds=values.integer("remote.log.manager.fetch.quota.window.size.seconds"),
        metadata_partition_count=topic["num.partitions"],
        metadata_replication_factor=topic["replication.factor"],
        is_replication_factor_capped=_metadata_text(values, "replication.factor") is None,
        metadata_retention_ms=topic["retention.ms"],
    )


def _metadata_key(values: PropertyValues, name: str) -> str:
    return f"{values.text_or_none(METADATA_PREFIX) or ''}remote.log.metadata.topic.{name}"


def _metadata_text(values: PropertyValues, name: str) -> str | None:
    return values.properties.get(_metadata_key(values, name))


def _metadata_number(values: PropertyValues, name: str) -> int:
    text = _metadata_text(values, name)
    if text is None:
        return METADATA_TOPIC_DEFAULTS[name]
    least = -1 if name == "retention.ms" else 1
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{_metadata_key(values, name)} is {text!r}, but it is a number, {least} or more.")
    return number
