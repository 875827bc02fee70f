"""Ports that two clusters take at the same time are never the same."""

from __future__ import annotations

import random
import socket

from penstock.chaos.links.reserved_ports import ReservedPorts
from penstock.local.ports import check_free


def test_clusters_that_draw_alike_share_no_port() -> None:
    with ReservedPorts(random.Random(1)) as one, ReservedPorts(random.Random(1)) as other:
        taken = [ports.take() for _ in range(150) for ports in (one, other)]
    assert len(set(taken)) == len(taken)


def test_a_port_with_a_listener_is_left_out() -> None:
    with ReservedPorts(random.Random(2)) as ports:
        first = ports.take()
    with socket.create_server(("127.0.0.1", first + 1)), ReservedPorts(random.Random(2)) as ports:
        assert (ports.take(), ports.take()) == (first, first + 2)


def test_blocks_are_free_again_afterwards() -> None:
    with ReservedPorts(random.Random(3)) as ports:
        first = ports.take()
    check_free(first - 1)
