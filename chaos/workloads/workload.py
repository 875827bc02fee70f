"""A workload as data: the topics that it needs, the client programs that it is made of, its checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec import Struct

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ...local.errors import ClusterError
from ..histories.operation import Header

_CREATE_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05


class WorkloadTopic(Struct, frozen=True, kw_only=True):
    # Behind the name that the run gives; empty for the first one.
    suffix: str = ""
    partitions: int = 4
    configs: Mapping[str, str] = {}


class ClientProgram(Struct, frozen=True, kw_only=True):
    """`count` processes of a program in this package: a module, or a class where the client is Java's."""

    module: str
    client: Literal["confluent", "aiokafka", "java"] = "confluent"
    options: Sequence[str] = ()
    count: int = 1
    # Those of a later stage are told to stop when those before have stopped.
    stage: int = 0


class Workload(Struct, frozen=True, kw_only=True):
    name: str
    # For `penstock chaos list`.
    sentence: str
    topics: Sequence[WorkloadTopic]
    programs: Sequence[ClientProgram]
    # By their names in `checkers`.
    checkers: Sequence[str]
    is_read_committed: bool = True
    is_idempotent: bool = True
    # Whether all that clients do is: a send of several values is whole or not at all then.
    has_transactions: bool = False
    subscribes: bool = False
    # Without any, no fault of the calls that logs get takes hold, and no log can be damaged.
    has_records: bool = True

    def header(self, *, seed: int | None, nodes: int) -> Header:
        """Of its history."""
        return Header(
            workload=self.name,
            seed=seed,
            nodes=nodes,
            isolation="read_committed" if self.is_read_committed else "read_uncommitted",
            idempotent=self.is_idempotent,
            transactions=self.has_transactions,
            subscribe=self.subscribes,
        )


def create_topics(
    bootstrap: str, workload: Workload, topic: str, *, replicas: int, configs: Mapping[str, str] | None = None
) -> None:
    """Creates what the workload needs under names that begin with `topic`, and waits until it is led.

    `configs` win over those of the workload. Raises ClusterError.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    news = {}
    for one in workload.topics:
        config = {"min.insync.replicas": str(min(2, replicas)), **one.configs, **(configs or {})}
        news[topic + one.suffix] = NewTopic(topic + one.suffix, one.partitions, replicas, config=config)
    if not news:
        return
    for name, future in admin.create_topics(list(news.values()), operation_timeout=_CREATE_TIMEOUT_S).items():
        try:
            future.result(_CREATE_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            reason: Any = error.args[0] if error.args else error
            # librdkafka asks again after an answer that was lost.
            if not (isinstance(reason, KafkaError) and reason.code() == KafkaError.TOPIC_ALREADY_EXISTS):
                raise ClusterError(f"topic {name} of the workload {workload.name} was not created: {reason}") from error

    def is_led() -> bool:
        try:
            told = admin.list_topics(timeout=_CREATE_TIMEOUT_S).topics
        except KafkaException:
            return False
        return all(
            name in told
            and len(told[name].partitions) == new.num_partitions
            and all(one.leader >= 0 for one in told[name].partitions.values())
            for name, new in news.items()
        )

    if not clock.wait_until(is_led, timeout_s=_CREATE_TIMEOUT_S, interval_s=_POLL_S):
        raise ClusterError(f"the topics of the workload {workload.name} have no leaders after {_CREATE_TIMEOUT_S:g} s")
