"""Who decides the partition of a record."""

import pytest

from penstock.client.partitioners import RoundRobin, UnknownPartitionerError, partitioner_of


def test_round_robin_goes_through_all_partitions_whatever_the_key() -> None:
    choose = RoundRobin()
    assert [choose(b"same", None, 3) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_round_robin_stays_within_a_count_that_shrank() -> None:
    choose = RoundRobin()
    assert [choose(None, None, count) for count in (5, 5, 5, 2, 2)] == [0, 1, 2, 1, 0]


def test_murmur2_is_left_to_the_client() -> None:
    assert partitioner_of("murmur2") is None
    assert isinstance(partitioner_of("round-robin"), RoundRobin)


def test_function_of_a_module_is_a_partitioner() -> None:
    assert partitioner_of("operator:countOf") is not None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("random", "choose murmur2"),
        ("module:", "choose murmur2"),
        ("no_such_module:f", "cannot be imported"),
        ("math:no_such_function", "no function 'no_such_function'"),
        ("math:pi", "no function 'pi'"),
    ],
)
def test_what_is_no_partitioner_is_refused_with_a_sentence(name: str, sentence: str) -> None:
    with pytest.raises(UnknownPartitionerError, match=sentence):
        partitioner_of(name)
