"""What each repair of Kafka's replication is for, step by step on whole nodes."""

from __future__ import annotations

from collections.abc import Callable

from producer_scenario import ProducerScenario
from replication_scenario import LEADER_ONLY, Scenario

from penstock.protocol.apis import ApiKey

ALL_BROKERS = {"A", "B", "C"}


def kip_101_followers_do_not_cut_what_may_be_committed() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.show()
    it.say("-- The fourth record is acknowledged; followers have it, and do not know yet that it is committed.")
    it.produce("A", 1)
    it.cut_between("B", "C")
    it.kill("A")
    it.until(lambda: it.leader == "B" and it.epoch_of("C") == 1)
    it.say("-- C follows B now, and cannot reach it. Had it cut its log to its high watermark, the record were gone.")
    it.kill("B")
    it.until(lambda: it.leader == "C")
    it.show()
    it.read("C", 3)
    return it


def kip_279_logs_part_in_epochs_that_the_leader_never_had() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.settle()
    it.cut("A")
    it.produce("A", 2, acks=LEADER_ONLY)
    it.until(lambda: it.leader == "B")
    it.cut("A", "B")
    it.produce("B", 1, acks=LEADER_ONLY)
    it.until(lambda: it.leader == "C")
    it.produce("C", 2, acks=LEADER_ONLY)
    it.show()
    it.say("-- B has an epoch that C never saw, A an epoch that was longer there than in C's log.")
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.show()
    return it


def kip_320_a_replica_in_another_epoch_is_told_so() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.settle()
    it.cut("A")
    it.until(lambda: it.leader == "B")
    it.produce("B", 2)
    it.say("-- A still takes itself for the leader of epoch 0.")
    it.read("A", 3, leader_epoch=0)
    it.read("A", 3, leader_epoch=1)
    it.read("B", 3, leader_epoch=0)
    it.read("B", 3, leader_epoch=1)
    it.say("-- A consumer that has read up to 5 in epoch 0 asks where that ended.")
    it.find_end("B", 0, current_leader_epoch=1)
    it.find_end("B", 0, current_leader_epoch=0)
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.read("A", 3, leader_epoch=1)
    it.show()
    return it


def kip_903_a_process_that_is_gone_does_not_join_the_isr() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.lose_power("B")
    it.until(lambda: it.isr == {"A", "C"})
    it.produce("A", 2)
    it.hold_up("A", ApiKey.ALTER_PARTITION, 3.8)
    it.start("B")
    it.until(lambda: it.has_pending_isr("A"))
    it.say("-- B has caught up, and A asks for it. Meanwhile B becomes another process, which has lost it all.")
    it.lose_power("B")
    it.cut_between("A", "B")
    it.start("B")
    it.until(lambda: not it.has_pending_isr("A"))
    it.show()
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.show()
    return it


def kip_966_the_last_replica_that_stood_is_not_the_only_one_that_may_lead() -> Scenario:
    it = Scenario(min_isr=2)
    it.produce("A", 3)
    it.settle()
    it.lose_power("B")
    it.until(lambda: it.isr == {"A", "C"})
    it.produce("A", 1)
    it.settle()
    it.stop("C")
    it.until(lambda: it.isr == {"A"})
    it.say("-- A is alone, and may commit nothing: a replica that is eligible has all that is committed.")
    it.produce("A", 1)
    it.produce("A", 1, acks=LEADER_ONLY)
    it.cut_between("A", "B")
    it.start("B")
    it.show()
    it.kill("A")
    it.until(lambda: it.leader is None)
    it.say("-- B is up, and may not lead: it lost what it had. C was in sync when it went.")
    it.start("C")
    it.until(lambda: it.leader == "C")
    it.heal()
    it.until(lambda: it.isr == {"B", "C"})
    it.read("C", 3)
    it.produce("C", 1)
    it.start("A")
    it.until(lambda: it.isr == ALL_BROKERS)
    it.show()
    return it


def stale_alter_partition_is_refused() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.kill("B")
    it.until(lambda: it.isr == {"A", "C"})
    it.hold_up("A", ApiKey.ALTER_PARTITION, 3.0)
    it.start("B")
    it.until(lambda: it.has_pending_isr("A"))
    it.say("-- A's request knows partition epoch 1. Before it arrives, C goes.")
    it.stop("C")
    it.until(lambda: it.isr == {"A"})
    it.until(lambda: it.isr == {"A", "B"})
    it.show()
    return it


def alter_partition_that_arrives_again_changes_nothing() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.kill("B")
    it.until(lambda: it.isr == {"A", "C"})
    it.hold_up("A", ApiKey.ALTER_PARTITION, 8.0)
    it.start("B")
    it.until(lambda: it.isr == ALL_BROKERS and not it.has_pending_isr("A"))
    it.say("-- A waited for the answer, and asked again by another connection. The first request is still under way.")
    it.cut_between("A", "B")
    it.produce("A", 1, acks=LEADER_ONLY)
    it.until(lambda: it.isr == {"A", "C"})
    it.say("-- Now it arrives. Nothing comes of it: B does not have the fourth record.")
    it.pass_time(6.0)
    it.show()
    return it


def high_watermark_waits_for_the_maximal_isr() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.kill("B")
    it.until(lambda: it.isr == {"A", "C"})
    it.hold_up("A", ApiKey.ALTER_PARTITION, 3.0)
    it.start("B")
    it.until(lambda: it.has_pending_isr("A"))
    it.say("-- The controller may have let B in already, for all that A knows.")
    it.cut_between("A", "B")
    it.produce("A", 2)
    it.show()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.say("-- B lags behind, and is taken out again. Only then the records are committed.")
    it.until(lambda: it.isr == {"A", "C"})
    it.show()
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    return it


def a_leader_is_isolated_with_its_clients() -> Scenario:
    it = Scenario(min_isr=2)
    it.produce("A", 3)
    it.settle()
    it.cut("A")
    it.produce("A", 1)
    it.produce("A", 1, acks=LEADER_ONLY)
    it.read("A", 3)
    it.until(lambda: it.leader == "B")
    it.produce("B", 1)
    it.show()
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.produce("A", 1)
    it.read("B", 3)
    it.show()
    return it


def three_elections_in_three_epochs() -> Scenario:
    it = Scenario()
    it.produce("A", 2)
    it.settle()
    it.say("-- A goes in good order.")
    it.stop("A")
    it.until(lambda: it.leader == "B")
    it.produce("B", 2)
    it.start("A")
    it.until(lambda: it.isr == ALL_BROKERS)
    it.settle()
    it.say("-- B is cut off.")
    it.cut("B")
    it.produce("B", 1, acks=LEADER_ONLY)
    it.until(lambda: it.leader == "A")
    it.produce("A", 2)
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.say("-- A is killed.")
    it.kill("A")
    it.until(lambda: it.leader not in (None, "A"))
    assert it.leader is not None
    it.produce(it.leader, 1)
    it.start("A")
    it.until(lambda: it.isr == ALL_BROKERS)
    it.show()
    return it


def progress_of_an_earlier_leadership_does_not_count() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.settle()
    it.cut_between("A", "B")
    it.produce("A", 2, acks=LEADER_ONLY)
    it.until(lambda: it.end_of("C") == 5)
    it.say("-- A has heard that C has five records. B has three, and is in sync: only those are committed.")
    it.cut("A")
    it.until(lambda: it.leader == "B" and it.end_of("C") == 3)
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.settle()
    it.show()
    it.say("-- A will lead again, and has not heard C since then.")
    it.cut_between("A", "C")
    it.stop("B")
    it.until(lambda: it.leader == "A")
    it.produce("A", 2)
    it.say("-- C does not have them. Only when it has been taken out of the ISR they are committed.")
    it.pass_time(5.0)
    it.show()
    it.heal()
    it.start("B")
    it.until(lambda: it.isr == ALL_BROKERS)
    it.show()
    return it


def a_marker_that_is_cut_off_opens_its_transaction_again() -> Scenario:
    it = ProducerScenario()
    it.produce("A", 2)
    it.produce_in_transaction("A")
    it.settle()
    it.cut("A")
    it.abort("A")
    it.until(lambda: it.leader == "B")
    it.say("-- Only A has the marker. When it is cut off, no index of A may say that the transaction is aborted.")
    it.heal()
    it.until(lambda: it.isr == ALL_BROKERS)
    it.show()
    it.abort("B")
    it.show()
    return it


def a_replica_joins_once_it_has_what_earlier_leaders_may_have_committed() -> Scenario:
    it = Scenario()
    it.produce("A", 3)
    it.stop("A")
    it.until(lambda: it.leader == "B")
    it.start("A")
    it.until(lambda: it.isr == ALL_BROKERS)
    it.kill("C")
    it.until(lambda: it.isr == {"A", "B"})
    it.cut_between("B", "C")
    it.start("C")
    it.settle()
    it.produce("B", 2)
    it.say("-- A has them too, and does not know yet that they are committed.")
    it.cut_between("A", "B")
    it.elect_preferred("A")
    it.until(lambda: it.leader == "A")
    it.say("-- For A only three records are committed, and C has three. It joins when it has five.")
    it.until(lambda: "C" in it.isr)
    it.heal()
    it.pass_time(3.0)
    it.show()
    return it


def a_retry_of_what_is_deleted_is_known_where_the_batch_never_was() -> Scenario:
    it = ProducerScenario()
    it.produce_idempotently("A")
    it.lose_power("B")
    it.until(lambda: it.isr == {"A", "C"})
    it.delete_records("A", 2)
    it.start("B")
    it.until(lambda: it.isr == ALL_BROKERS)
    it.say("-- B has not a batch of that producer, and is to lead.")
    it.stop("A")
    it.until(lambda: it.leader == "B")
    it.produce_idempotently("B")
    it.show()
    return it


def a_batch_behind_one_that_was_refused_in_passing_is_not_out_of_order() -> Scenario:
    it = ProducerScenario(min_isr=2)
    it.produce_idempotently("A")
    it.kill("B")
    it.kill("C")
    it.until(lambda: it.isr == {"A"})
    it.produce_idempotently("A", sequence=2)
    it.start("B")
    it.until(lambda: it.isr == {"A", "B"})
    it.say("-- The producer had the next batch under way already. It sends both again, in their order.")
    it.produce_idempotently("A", sequence=4)
    it.produce_idempotently("A", sequence=2)
    it.produce_idempotently("A", sequence=4)
    it.start("C")
    it.until(lambda: it.isr == ALL_BROKERS)
    it.show()
    return it


STORIES: tuple[Callable[[], Scenario], ...] = (
    kip_101_followers_do_not_cut_what_may_be_committed,
    kip_279_logs_part_in_epochs_that_the_leader_never_had,
    kip_320_a_replica_in_another_epoch_is_told_so,
    kip_903_a_process_that_is_gone_does_not_join_the_isr,
    kip_966_the_last_replica_that_stood_is_not_the_only_one_that_may_lead,
    stale_alter_partition_is_refused,
    alter_partition_that_arrives_again_changes_nothing,
    high_watermark_waits_for_the_maximal_isr,
    a_leader_is_isolated_with_its_clients,
    three_elections_in_three_epochs,
    progress_of_an_earlier_leadership_does_not_count,
    a_marker_that_is_cut_off_opens_its_transaction_again,
    a_replica_joins_once_it_has_what_earlier_leaders_may_have_committed,
    a_retry_of_what_is_deleted_is_known_where_the_batch_never_was,
    a_batch_behind_one_that_was_refused_in_passing_is_not_out_of_order,
)
