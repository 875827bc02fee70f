"""Starts on log directories are numbered, so that the later one of two processes is known."""

from random import Random

from node_disk import node_disk, open_directories

from penstock.storage.directories.rules.start_count import decode_start_count, encode_start_count


def test_number_of_starts_is_read_back_and_nonsense_counts_as_none() -> None:
    assert encode_start_count(7) == b'{"version":0,"starts":7}'
    assert decode_start_count(encode_start_count(7)) == 7
    for data in (b"", b"{", b"[]", b"{}", b'{"starts":"7"}', b'{"starts":-1}', b'{"starts":true}', b"\xff"):
        assert decode_start_count(data) == 0
    assert decode_start_count(encode_start_count(2**48)) == 0


def test_every_start_has_a_higher_number_than_those_before_also_when_the_power_is_lost() -> None:
    with node_disk("/a", "/b") as node:
        numbers = []
        for seed in range(5):
            open_directories(node.manager, "cluster")
            numbers.append(node.manager.directories.count_start())
            node.files.crash(Random(seed))
            node.manager = node.new_manager()
        assert numbers == [1, 2, 3, 4, 5]


def test_a_directory_that_missed_starts_is_told_their_number() -> None:
    with node_disk("/a", "/b") as node:
        open_directories(node.manager, "cluster")
        for name, count in (("/a", 8), ("/b", 3)):
            node.files.write_atomically(f"{name}/.penstock_starts", encode_start_count(count))
        node.manager.directories.unlock()
        manager = node.new_manager()
        open_directories(manager, "cluster")
        assert manager.directories.count_start() == 9
        assert [node.files.read(f"{name}/.penstock_starts") for name in ("/a", "/b")] == [encode_start_count(9)] * 2


def test_a_full_disk_ends_no_start() -> None:
    with node_disk() as node:
        open_directories(node.manager, "cluster")
        node.files.capacity_bytes = 1
        assert node.manager.directories.count_start() == 1
        assert all(directory.is_online for directory in node.manager.directories)
        assert not node.files.exists("/data/.penstock_starts")
