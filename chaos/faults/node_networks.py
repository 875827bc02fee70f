"""A network of its own for each node, which a firewall makes refuse or lose packets. Needs root.

Each node is in a network namespace, joined by a cable (veth) to a switch (bridge) in one more namespace, where the
clients are, but for those of slots, which are in namespaces of their own. Nothing of the machine's own network is
touched. What a program that was killed has left of such networks goes when the next ones are made. A node whose
network refuses lives on, and its connections end with a reset, old ones and new ones, as behind a firewall that was
given the wrong rules.

    node 1 (10.0.0.1) --+
    node 2 (10.0.0.2) --+-- switch, clients (10.0.0.254)
    node 3 (10.0.0.3) --+
    slot 0 (10.0.0.200) +
"""

import ctypes
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ...local import child_processes
from ...local.errors import ClusterError
from ...local.processes import identify

DEVICE: Final = "eth0"
"""In the network of each end: its cable to the switch."""

_SWITCH_ADDRESS: Final = "10.0.0.254/24"
# Of the first slot of clients: more nodes than lie below it are not run on one machine.
_FIRST_SLOT: Final = 200
_NAMESPACES: Final = Path("/run/netns")
_OF_PROCESS: Final = re.compile(r"penstock-(\d+)-")
_OWN_NETWORK: Final = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET: Final = 0x40000000
# The programs that are called, and the packages of Debian that have them.
_PROGRAMS: Final[Mapping[str, str]] = {"nft": "nftables", "ip": "iproute2", "tc": "iproute2", "ss": "iproute2"}
_RESET_S: Final = 2.0
# Several objects of one process have networks at the same time.
_numbers: Final = count(1)
# Packets of the reset itself have to come through.
_REFUSAL: Final = """
    table inet refusal {
        chain in {
            type filter hook input priority 0;
            meta l4proto tcp iif != lo tcp flags & rst == 0 reject with tcp reset;
        }
        chain out {
            type filter hook output priority 0;
            meta l4proto tcp oif != lo tcp flags & rst == 0 reject with tcp reset;
        }
    }
"""


class NetworksUnavailableError(ClusterError):
    """A sentence that says why there can be no such networks here."""


class NodeNetworks:
    """For nodes with these ids, while the context lasts. The nodes have to have ended before it does."""

    def __init__(self, node_ids: Iterable[int], slots: Sequence[str] = ()) -> None:
        self._prefix = f"penstock-{os.getpid()}-{next(_numbers)}"
        self._switch = f"{self._prefix}-switch"
        self.hosts: Mapping[int, str] = {node_id: f"10.0.0.{node_id}" for node_id in node_ids}
        slot_hosts = {slot: f"10.0.0.{_FIRST_SLOT + number}" for number, slot in enumerate(slots)}
        self.addresses: Mapping[str, str] = {**{str(one): host for one, host in self.hosts.items()}, **slot_hosts}
        """Of every end of a link: nodes by their ids, and slots."""
        self._made: list[str] = []
        self._shaped: set[int | str] = set()

    def command(self, end: int | str) -> tuple[str, ...]:
        """What stands in front of the command of a node or of a slot's client: the process is the same, in that
        network."""
        return ("ip", "netns", "exec", self._name(end))

    def rule(self, end: int | str, table: str) -> None:
        """Gives the firewall of one network this text, as `nft -f` takes it."""
        _run("ip", "netns", "exec", self._name(end), "nft", "-f", "-", text=table)

    def rules(self, end: int | str, table: str) -> str:
        """One table of the firewall of one network, as `nft -j` prints it."""
        return _run("ip", "netns", "exec", self._name(end), "nft", "-j", "list", "table", "inet", table)

    def shape(self, end: int | str, disciplines: str) -> None:
        """The cable of one network sends by these queueing disciplines, as `tc -batch` takes them, in place of those
        that it had; empty: by none."""
        if end in self._shaped:
            _run("tc", "-n", self._name(end), "qdisc", "delete", "dev", DEVICE, "root")
            self._shaped.discard(end)
        if disciplines:
            self._shaped.add(end)
            _run("tc", "-n", self._name(end), "-batch", "-", text=disciplines)

    def reset(self, end: int | str, peer: str, ports: Iterable[int]) -> None:
        """Resets the connections that the host `peer` has opened to these ports of one network."""
        listening = " or ".join(f"sport = :{port}" for port in ports)
        _run("ip", "netns", "exec", self._name(end), "ss", "-K", "-H", "-t", "-4", "dst", peer, f"( {listening} )")

    def has_netem(self) -> bool:
        """Whether this kernel can delay packets."""
        return self._has_discipline("netem", "delay", "1ms")

    def has_htb(self) -> bool:
        """Whether this kernel can narrow one link of several."""
        return self._has_discipline("htb")

    def has_resets(self) -> bool:
        """Whether this kernel resets the connections of a process that knows nothing of it."""
        with self.joined(), socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port), timeout=_RESET_S) as dialed, server.accept()[0]:
                _run("ss", "-K", "-H", "-t", "-4", "dst", "127.0.0.1", f"( sport = :{port} )")
                try:
                    dialed.recv(1)
                except ConnectionError:
                    return True
                except TimeoutError:
                    return False
        return False

    def refuse(self, node_id: int) -> None:
        """All connections of this node, those that it has too, are refused from now on, in both directions."""
        _run("ip", "netns", "exec", self._name(node_id), "nft", "-f", "-", text=_REFUSAL)

    def heal(self, node_id: int) -> None:
        _run("ip", "netns", "exec", self._name(node_id), "nft", "delete", "table", "inet", "refusal")

    @contextmanager
    def joined(self, end: str | None = None) -> Iterator[None]:
        """The calling thread, and those that it starts, are where the clients are, or in the network of this end."""
        own = os.open(_OWN_NETWORK, os.O_RDONLY | os.O_CLOEXEC)
        try:
            name = self._switch if end is None else self._name(end)
            there = os.open(_NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _enter(there)
            finally:
                os.close(there)
            try:
                yield
            finally:
                _enter(own)
        finally:
            os.close(own)

    def __enter__(self) -> Self:
        """Raises NetworksUnavailableError."""
        lacks = missing()
        if lacks:
            raise NetworksUnavailableError(
                f"no network namespaces can be made for nodes here without {'; '.join(lacks)}"
            )
        # Before a thread of this program is in one of them.
        child_processes.begin()
        try:
            _remove_leftovers()
            self._make(self._switch)
            _run("ip", "-n", self._switch, "link", "add", "switch", "type", "bridge")
            _run("ip", "-n", self._switch, "address", "add", _SWITCH_ADDRESS, "dev", "switch")
            _run("ip", "-n", self._switch, "link", "set", "switch", "up")
            for end, host in self.addresses.items():
                self._plug_in(end, host)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _has_discipline(self, *discipline: str) -> bool:
        try:
            _run("tc", "-n", self._switch, "qdisc", "replace", "dev", "lo", "root", *discipline)
        except NetworksUnavailableError:
            return False
        _run("tc", "-n", self._switch, "qdisc", "delete", "dev", "lo", "root")
        return True

    def _name(self, end: int | str) -> str:
        return f"{self._prefix}-{end}"

    def _plug_in(self, end: str, host: str) -> None:
        name, cable = self._name(end), f"to-{end}"
        self._make(name)
        _run("ip", "-n", self._switch, "link", "add", cable, "type", "veth", "peer", "name", DEVICE, "netns", name)
        _run("ip", "-n", self._switch, "link", "set", cable, "master", "switch", "up")
        _run("ip", "-n", name, "address", "add", f"{host}/24", "dev", DEVICE)
        # Packets are those of a cable: without this the kernel passes on up to 64 KB as one, to be lost or held as one.
        _run("ip", "-n", name, "link", "set", DEVICE, "gso_max_segs", "1")
        _run("ip", "-n", name, "link", "set", DEVICE, "up")

    def _make(self, name: str) -> None:
        try:
            _run("ip", "netns", "add", name)
        except NetworksUnavailableError as error:
            raise NetworksUnavailableError(
                f"{error} (a container needs --privileged, or --cap-add NET_ADMIN and SYS_ADMIN)"
            ) from error
        self._made.append(name)
        _run("ip", "-n", name, "link", "set", "lo", "up")

    def _remove(self) -> None:
        with ExitStack() as stack:
            # All of them, whatever becomes of one.
            while self._made:
                stack.callback(_run, "ip", "netns", "delete", self._made.pop(0))


def missing() -> list[str]:
    """What this machine lacks for such networks, each with how to get it."""
    if sys.platform != "linux":
        return ["Linux"]
    lacks = [] if os.geteuid() == 0 else ["root (sudo)"]
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    lacks += [f"{name} (Debian: apt-get install {_PROGRAMS[name]})" for name in absent]
    return lacks


def _remove_leftovers() -> None:
    """Namespaces of programs that were killed: their names have the process ids."""
    for path in _NAMESPACES.glob("penstock-*") if _NAMESPACES.exists() else ():
        found = _OF_PROCESS.match(path.name)
        if found is None or identify(int(found[1])) is not None:
            continue
        try:
            _run("ip", "netns", "delete", path.name)
        except NetworksUnavailableError:
            # Another program may have removed it meanwhile.
            if path.exists():
                raise


def _enter(descriptor: int) -> None:
    # `os.setns` is there from Python 3.12 on.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _run(*command: str, text: str | None = None) -> str:
    """What it printed."""
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NetworksUnavailableError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        raise NetworksUnavailableError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
