"""controller_mutation_rate: partitions that a client of any broker has created and deleted (KIP-599)."""

from __future__ import annotations

import pytest
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import f64, i16, i32
from memory_node import World, create_topic, describe, run

from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.broker.quotas.counted_mutations import CountedMutations
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode
from penstock.quorum.decisions.decision_cost import INLINE_MAX
from penstock.quorum.decisions.mutation_quota import NO_MUTATIONS, MutationAllowance, Mutations
from penstock.quorum.metadata.quota_precedence import CONTROLLER_MUTATION_RATE
from penstock.quorum.permissions.requester import Requester

ALICE = Requester("User:alice", "10.0.0.1", client_id="app")


class Controller:
    """With a quota of one partition a second for each user: eleven at once."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.quotas = ClientQuotas(sample_count=11, window_ms=1000, time_s=lambda: self.now_ms / 1000)
        self.quotas.set_quotas({(("user", None),): {CONTROLLER_MUTATION_RATE: 1.0}})

    def quota(self, requester: Requester = ALICE) -> CountedMutations:
        found = self.quotas.find_mutations(requester)
        assert found is not None
        return found

    def count(self, partition_count: int, *, is_exceeded: bool = False) -> int:
        quota = self.quota()
        quota.settle(Mutations(partition_count, is_exceeded))
        return quota.throttle_time_ms()


def test_requests_of_one_user_take_from_one_bucket() -> None:
    controller = Controller()
    assert controller.quota().allowance() == MutationAllowance(11.0, is_strict=True)
    assert controller.count(15) == 0
    of_old_version = controller.quota(ALICE._replace(client_id=None, host="10.0.0.2", is_strict=False))
    assert of_old_version.allowance() == MutationAllowance(-4.0, is_strict=False)
    assert controller.quota(Requester("User:bob", "10.0.0.1")).allowance().tokens == 11
    controller.now_ms = 5000
    assert controller.quota().allowance().tokens == 1


def test_the_throttle_time_is_the_debt_less_what_has_passed() -> None:
    controller = Controller()
    quota = controller.quota()
    quota.settle(Mutations(15, is_exceeded=True))
    assert quota.throttle_time_ms() == 4000
    controller.now_ms = 1500
    assert quota.throttle_time_ms() == 2500
    controller.now_ms = 9000
    assert quota.throttle_time_ms() == 0


def test_what_changes_nothing_is_no_use_of_the_quota() -> None:
    controller = Controller()
    assert controller.count(15, is_exceeded=True) == 4000
    quota = controller.quota()
    quota.settle(NO_MUTATIONS)
    assert quota.throttle_time_ms() == 0


def test_refusals_are_throttled_and_counted_as_such() -> None:
    controller = Controller()
    controller.count(15)
    assert controller.count(0, is_exceeded=True) == 4000
    ((_, sensor),) = controller.quotas.sensors[CONTROLLER_MUTATION_RATE]
    assert sensor.average_throttle_ms(0) == 4000
    assert sensor.rate(0) == pytest.approx(1.5)


def test_a_client_without_a_quota_of_changes_has_none() -> None:
    controller = Controller()
    controller.quotas.set_quotas({(("user", "alice"),): {"producer_byte_rate": 1.0}})
    assert controller.quotas.find_mutations(ALICE) is None
    controller.quotas.set_quotas({})
    assert controller.quotas.find_mutations(ALICE) is None


async def set_quota(administrator: Connection) -> None:
    """One partition a second for the client id "limited"."""
    entity = (EntityData(entity_type="client-id", entity_name="limited"),)
    change = OpData(key=CONTROLLER_MUTATION_RATE, value=f64(1.0), remove=False)
    await administrator.call(
        AlterClientQuotasRequest(entries=(EntryData(entity=entity, ops=(change,)),), validate_only=False)
    )


def creation(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=TopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
            )
            for name in names
        )
    )


@pytest.mark.thorough
@pytest.mark.parametrize("partition_count", [100, INLINE_MAX + 1])
def test_on_a_node_a_topic_above_the_quota_is_refused_with_the_throttle_time(partition_count: int) -> None:
    """Decisions that are made beside the loop count as well."""

    async def scenario() -> None:
        async with World(controller_quota_window_num="1").running() as (node, administrator):
            await set_quota(administrator)
            port = node.bound_ports["PLAINTEXT"]
            async with await connect("127.0.0.1", port, client_id="limited") as limited:
                assert await create_topic(limited, "a", partition_count) == ErrorCode.NONE
            async with await connect("127.0.0.1", port, client_id="limited") as limited:
                refused = await limited.call(creation("b"))
                assert isinstance(refused, CreateTopicsResponse)
                assert int(refused.topics[0].error_code) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
                assert 50 < refused.throttle_time.total_seconds() <= partition_count - 1
                assert await create_topic(administrator, "b") == ErrorCode.NONE

    run(scenario)


def test_topics_that_metadata_creates_count_too() -> None:
    async def scenario() -> None:
        async with World(controller_quota_window_num="1", num_partitions="100").running() as (node, administrator):
            await set_quota(administrator)
            port = node.bound_ports["PLAINTEXT"]
            async with await connect("127.0.0.1", port, client_id="limited") as limited:
                await describe(limited, "a", creates=True)
                assert await create_topic(limited, "b") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            async with await connect("127.0.0.1", port, client_id="limited") as limited:
                await describe(limited, "c", creates=True)
            assert set(node.metadata.image.topics.by_name) == {"a"}

    run(scenario)
