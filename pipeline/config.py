"""What all jobs are told; a job adds fields of its own."""

from __future__ import annotations

import msgspec


class JobConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of one job. `config_reading.read_config` makes it from a file and from assignments.

    Properties of clients and registries may be secrets, so they are left out of `repr`.
    """

    bootstrap: str
    """Brokers of the cluster that is read, as host:port,…"""
    checkpoint: str
    """The folder below which the job keeps its checkpoint, a path or a URI that Spark can write."""
    name: str = ""
    """Of this instance of the job, where several share a folder or a cluster; the job's own if empty."""
    topics: tuple[str, ...] = ()
    topic_pattern: str = ""
    """A regular expression of Java; either this or `topics`."""
    starting_offsets: str = "earliest"
    """Where a first run begins: earliest, latest, or JSON as Spark's option has it."""
    max_offsets_per_trigger: int = 100_000
    """The most records of one batch, all partitions together: the bound on memory and on what is done again."""
    trigger_interval_ms: int = 0
    """Between the beginnings of two batches; 0: the next begins when one ends."""
    available_now: bool = False
    """Ends when everything that is there at the beginning has been read."""
    isolation_level: str = "read_committed"
    fail_on_data_loss: bool = True
    """Stops where records were deleted before they were read; false goes on behind the gap."""
    sink_bootstrap: str = ""
    """Brokers of the cluster that is written; the one that is read if empty."""
    kafka: dict[str, str] = {}
    """Properties of clients of both clusters, in Apache Kafka's names: security.protocol and the like."""
    source_kafka: dict[str, str] = {}
    """For the cluster that is read; these win over `kafka`."""
    sink_kafka: dict[str, str] = {}
    """For the cluster that is written; these win over `kafka`."""
    dead_letter_topic: str = ""
    """Where records that cannot be used go, in the cluster that is written."""
    on_bad_record: str = "stop"
    """What a record does that cannot be used, without a dead-letter topic: stop ends the job, skip counts it."""
    progress_group: str = ""
    """A consumer group whose committed offsets follow the job, for tools that show lag."""
    metrics_port: int = 0
    """Where Prometheus finds the job's metrics on the driver's machine; 0: nowhere."""
    metrics_host: str = "127.0.0.1"
    """The address that `metrics_port` is open at; 0.0.0.0 where Prometheus runs on another machine."""

    def __post_init__(self) -> None:
        if bool(self.topics) and bool(self.topic_pattern):
            raise ValueError("either `topics` or `topic_pattern` is given, not both")
        if self.max_offsets_per_trigger < 1:
            raise ValueError(f"`max_offsets_per_trigger` is at least 1, not {self.max_offsets_per_trigger}")
        if self.trigger_interval_ms < 0:
            raise ValueError(f"`trigger_interval_ms` is at least 0, not {self.trigger_interval_ms}")
        if self.on_bad_record not in ("stop", "skip"):
            raise ValueError(f"`on_bad_record` is stop or skip, not {self.on_bad_record!r}")
        if self.isolation_level not in ("read_committed", "read_uncommitted"):
            raise ValueError(f"`isolation_level` is read_committed or read_uncommitted, not {self.isolation_level!r}")

    def refuse_bad_record_options(self) -> None:
        """Of a job that copies records as they are, to which none is bad. Raises ValueError."""
        if self.dead_letter_topic or self.on_bad_record != "stop":
            raise ValueError("`dead_letter_topic` and `on_bad_record` are of jobs that decode values; here none is bad")

    def offset_topics(self) -> tuple[str, ...]:
        """Topics named by the config at whose offsets a checkpoint stands, in the cluster at `bootstrap`."""
        return self.topics

    def bound_settings(self) -> dict[str, str]:
        """Settings beside the topics that must stay as they are while a checkpoint is continued, by their names: with
        others the job would go on where it is, and what came before would be missing."""
        return {}

    def __repr__(self) -> str:
        shown = {
            field: value
            for field in self.__struct_fields__
            if (value := getattr(self, field)) and not isinstance(value, dict)
        }
        return f"{type(self).__name__}({', '.join(f'{field}={value!r}' for field, value in shown.items())})"
