"""Orders survive the way to the node, and decide call by call."""

from __future__ import annotations

from errno import EIO, ENOSPC
from pathlib import Path

import pytest

from penstock.chaos.faults.orders import UNHARMED, DiskFault, Judge, Orders, Verdict, full_disk
from penstock.local.errors import ClusterError


def test_orders_are_the_same_after_their_way_to_the_node() -> None:
    orders = Orders(seed=3, number=4, clock_offset_ms=-5, disk=(DiskFault(operation="sync", error="EIO", count=2),))
    assert Orders.decode(orders.encode()) == orders


@pytest.mark.parametrize("text", ["", "[]", '{"number": 1, "else": 2}', '{"disk": [{"operation": "fly"}]}'])
def test_what_are_no_orders_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ClusterError):
        Orders.decode(text)


def test_unknown_error_is_refused_with_a_sentence() -> None:
    with pytest.raises(ClusterError, match="EFULL"):
        DiskFault(operation="write", error="EFULL")


def test_fault_hits_its_operation_on_its_paths_only() -> None:
    judge = Judge(Orders(disk=(DiskFault(operation="write", path="*/a-0/*.log", error="EIO"),)))
    assert judge.judge("write", "/data/a-0/0.log") == Verdict(error_number=EIO, fault=0)
    assert judge.judge("read", "/data/a-0/0.log") == UNHARMED
    assert judge.judge("write", "/data/a-0/0.index") == judge.judge("write", "/data/b-0/0.log") == UNHARMED


def test_fault_spares_the_first_and_ends_after_its_count() -> None:
    judge = Judge(Orders(disk=(DiskFault(operation="sync", error="EIO", skip=1, count=2),)))
    assert [judge.judge("sync", "/f").error_number for _ in range(5)] == [None, EIO, EIO, None, None]


def test_slow_disk_may_also_fail() -> None:
    slow = DiskFault(operation="write", delay_ms=30)
    judge = Judge(Orders(disk=(slow, DiskFault(operation="write", error="EIO", count=1))))
    assert judge.judge("write", "/f") == Verdict(delay_ms=30, error_number=EIO, fault=1)
    assert judge.judge("write", "/f") == Verdict(delay_ms=30, fault=0)


def test_same_seed_and_number_draw_the_same() -> None:
    def drawn(seed: int, number: int) -> list[bool]:
        judge = Judge(
            Orders(seed=seed, number=number, disk=(DiskFault(operation="read", error="EIO", probability=0.5),))
        )
        return [judge.judge("read", "/f") is UNHARMED for _ in range(50)]

    assert drawn(1, 1) == drawn(1, 1)
    assert drawn(1, 1) != drawn(1, 2)
    assert drawn(1, 1) != drawn(2, 1)


def test_full_disk_refuses_what_needs_room_and_lets_the_rest_be() -> None:
    judge = Judge(Orders(disk=full_disk("/data/*")))
    assert judge.judge("create", "/data/f").error_number == judge.judge("write", "/data/f").error_number == ENOSPC
    for operation in ("read", "remove", "rename", "sync", "truncate"):
        assert judge.judge(operation, "/data/f") == UNHARMED


def test_path_of_this_machine_matches(tmp_path: Path) -> None:
    judge = Judge(Orders(disk=(DiskFault(operation="remove", path=f"{tmp_path}/*", error="EIO"),)))
    assert judge.judge("remove", f"{tmp_path}/node-1/orders-0/0.log").error_number == EIO
