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
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ...local import child_processes
from ...local.errors import ClusterError
from ...local.processes import identify

_SWITCH_ADDRESS: Final = "10.0.0.254/24"
# Of the first slot of clients: more nodes than lie below it are not run on one machine.
_FIRST_SLOT: Final = 200
_NAMESPACES: Final = Path("/run/netns")
_OF_PROCESS: Final = re.compile(r"penstock-(\d+)-")
_OWN_NETWORK: Final = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET: Final = 0x40000000
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
        self._prefix = f"penstock-{os.getpid()}"
        self._switch = f"{self._prefix}-switch"
        self.hosts: Mapping[int, str] = {node_id: f"10.0.0.{node_id}" for node_id in node_ids}
        slot_hosts = {slot: f"10.0.0.{_FIRST_SLOT + number}" for number, slot in enumerate(slots)}
        self.addresses: Mapping[str, str] = {**{str(one): host for one, host in self.hosts.items()}, **slot_hosts}
        """Of every end of a link: nodes by their ids, and slots."""
        self._made: list[str] = []

    def command(self, end: int | str) -> tuple[str, ...]:
        """What stands in front of the command of a node or of a slot's client: the process is the same, in that
        network."""
        return ("ip", "netns", "exec", self._name(end))

    def rule(self, end: int | str, table: str) -> None:
        """Gives the firewall of one network this text, as `nft -f` takes it."""
        _run("ip", "netns", "exec", self._name(end), "nft", "-f", "-", text=table)

    def shape(self, end: int | str, discipline: str | None) -> None:
        """Both directions of the cable of one network get this queueing discipline of `tc`, or none."""
        for namespace, device in ((self._name(end), "eth0"), (self._switch, f"to-{end}")):
            if discipline is None:
                _run("tc", "-n", namespace, "qdisc", "delete", "dev", device, "root")
            else:
                _run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *discipline.split())

    def has_netem(self) -> bool:
        """Whether this kernel can delay packets."""
        try:
            _run("tc", "-n", self._switch, "qdisc", "replace", "dev", "lo", "root", "netem", "delay", "1ms")
        except NetworksUnavailableError:
            return False
        _run("tc", "-n", self._switch, "qdisc", "delete", "dev", "lo", "root")
        return True

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
        if os.geteuid() != 0:
            raise NetworksUnavailableError("networks of their own can only be made for nodes by root")
        # Before a thread of this program is in one of them.
        child_processes.begin()
        try:
            _run("nft", "--version")
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

    def _name(self, end: int | str) -> str:
        return f"{self._prefix}-{end}"

    def _plug_in(self, end: str, host: str) -> None:
        name, cable = self._name(end), f"to-{end}"
        self._make(name)
        _run("ip", "-n", self._switch, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "-n", self._switch, "link", "set", cable, "master", "switch", "up")
        _run("ip", "-n", name, "address", "add", f"{host}/24", "dev", "eth0")
        _run("ip", "-n", name, "link", "set", "eth0", "up")

    def _make(self, name: str) -> None:
        _run("ip", "netns", "add", name)
        self._made.append(name)
        _run("ip", "-n", name, "link", "set", "lo", "up")

    def _remove(self) -> None:
        with ExitStack() as stack:
            # All of them, whatever becomes of one.
            while self._made:
                stack.callback(_run, "ip", "netns", "delete", self._made.pop(0))


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


def _run(*command: str, text: str | None = None) -> None:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NetworksUnavailableError(f"{command[0]} is not installed (Debian: nftables, iproute2)") from None
    if done.returncode != 0:
        raise NetworksUnavailableError(f"{' '.join(command)}: {done.stderr.strip()}")
