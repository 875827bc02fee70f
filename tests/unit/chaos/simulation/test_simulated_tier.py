"""The tier of the simulated cluster: what fails is done or not, and a log goes on behind what the tier has."""

from random import Random

import pytest

from penstock.chaos.simulation.cluster.simulated_tier import SimulatedTier
from penstock.protocol.records import Record, write_batch
from penstock.storage.tiers.rules.tier_store import MissingObjectError, TierError

NAME = "topic/00000000-0000-0000-0000-000000000001/0/"


def batch(offset: int, value: bytes = b"value") -> bytes:
    return write_batch([Record(offset, 1, None, value)])


def put(tier: SimulatedTier, base: int, *batches: bytes, segment: str = "one") -> None:
    tier.put(f"{NAME}{base:020}-{segment}.indexes", b"indexes")
    tier.put(f"{NAME}{base:020}-{segment}.log", iter(batches))


def test_a_log_goes_on_behind_what_the_tier_has() -> None:
    tier = SimulatedTier(Random(1))
    put(tier, 0, batch(0), batch(1))
    put(tier, 3, batch(3))
    assert [one.base_offset for one in tier.joined({2: batch(2)}, "topic", 0).batches] == [0, 1, 2]
    assert [one.base_offset for one in tier.joined({4: b""}, "topic", 0).batches] == [3], "offset 2 is missing"
    assert not tier.joined({9: b""}, "topic", 0).batches
    assert not tier.joined({2: b""}, "topic", 1).batches


def test_a_copy_without_its_indexes_is_not_whole() -> None:
    tier = SimulatedTier(Random(1))
    tier.put(f"{NAME}{0:020}-one.log", batch(0))
    assert not tier.batches_of("topic", 0)
    tier.put(f"{NAME}{0:020}-one.indexes", b"indexes")
    assert tier.batches_of("topic", 0)
    tier.delete([f"{NAME}{0:020}-one.log"])
    assert not tier.batches_of("topic", 0)
    assert (tier.put_count, tier.delete_count) == (1, 1)


@pytest.mark.parametrize("second", ["one", "two"])
def test_copies_that_differ_are_told(second: str) -> None:
    tier = SimulatedTier(Random(1))
    put(tier, 0, batch(0), batch(1))
    put(tier, 0, batch(0), batch(1, b"other"), segment=second)
    assert ("two contents" if second == "one" else "differ") in tier.violations[0]


def test_what_is_no_log_is_told() -> None:
    tier = SimulatedTier(Random(1))
    put(tier, 0, batch(0)[:-1])
    assert "is no log" in tier.violations[0]


def test_a_call_that_fails_is_done_or_not() -> None:
    tier = SimulatedTier(Random(1))
    tier.failures_left = 50
    for number in range(50):
        with pytest.raises(TierError):
            tier.put(f"{NAME}{number}", b"x")
    assert not tier.failures_left
    assert 0 < len(list(tier.keys(NAME))) < 50


def test_nothing_is_done_while_it_is_out() -> None:
    tier = SimulatedTier(Random(1))
    tier.is_out = True
    with pytest.raises(TierError, match="out"):
        tier.put(f"{NAME}x", b"x")
    tier.is_out = False
    with pytest.raises(MissingObjectError):
        tier.get_range(f"{NAME}x", 0, 1)
