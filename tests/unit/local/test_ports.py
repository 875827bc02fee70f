"""Ports that two clusters take at the same time are never the same."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.local.errors import PortInUseError
from penstock.local.ports import ReservedPorts, check_free, find_free

_TAKE_THEN_WAIT = """
import random
from penstock.local.ports import find_free
print([find_free(random.Random(4)) for _ in range(100)], flush=True)
input()
"""


def test_free_port_can_be_listened_on_at_once() -> None:
    port = find_free(random.Random())
    check_free(port)
    socket.create_server(("127.0.0.1", port)).close()


def test_free_port_is_another_each_time_though_no_process_listens_on_it_yet() -> None:
    assert find_free(random.Random(1)) != find_free(random.Random(1))


def test_clusters_that_draw_alike_share_no_port() -> None:
    with ReservedPorts() as one, ReservedPorts() as other:
        taken = [ports.take(random.Random(1)) for _ in range(150) for ports in (one, other)]
    assert len(set(taken)) == len(taken)


def test_processes_that_draw_alike_share_no_port() -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", _TAKE_THEN_WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    taken: list[int] = []
    for child in children:
        assert child.stdout is not None
        taken += map(int, child.stdout.readline().strip("[]\n").split(","))
    for child in children:
        child.communicate("\n")
    assert len(taken) == 200
    assert len(set(taken)) == len(taken)


def test_a_fork_gives_out_none_of_its_parents_ports() -> None:
    find_free(random.Random(5))
    answer, question = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(answer[1], str(find_free(random.Random(5))).encode())
        # Until then its block is its own.
        os.read(question[0], 1)
        os._exit(0)
    of_fork = int(os.read(answer[0], 16))
    of_parent = [find_free(random.Random(5)) for _ in range(64)]
    os.write(question[1], b".")
    os.waitpid(pid, 0)
    for end in (*answer, *question):
        os.close(end)
    assert of_fork not in of_parent


def test_a_port_with_a_listener_is_left_out() -> None:
    with ReservedPorts() as ports:
        first = ports.take(random.Random(2))
    with socket.create_server(("127.0.0.1", first + 1)), ReservedPorts() as ports:
        assert (ports.take(random.Random(2)), ports.take(random.Random(2))) == (first, first + 2)


def test_blocks_are_free_again_afterwards() -> None:
    with ReservedPorts() as ports:
        first = ports.take(random.Random(3))
    check_free(first - 1)


def test_the_oldest_block_is_given_back_when_there_are_more_than_may_be() -> None:
    with ReservedPorts(blocks_max=1) as ports:
        first = ports.take(random.Random(6))
        with pytest.raises(PortInUseError):
            check_free_alone(first - 1)
        for _ in range(63):
            ports.take(random.Random(7))
        check_free_alone(first - 1)


def check_free_alone(port: int) -> None:
    """As `check_free`, of a socket that has to be the only one there, listening or not."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortInUseError(str(error)) from error


def test_threads_share_no_port() -> None:
    with ReservedPorts() as ports, ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda number: ports.take(random.Random(number)), range(400)))
    assert len(set(taken)) == len(taken)
