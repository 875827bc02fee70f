"""A cluster of real node processes on this machine: started, waited for, paused, killed, restarted, stopped.

One object looks after a cluster. Another program finds the same cluster by its folder, with `LocalCluster.attach`.
"""

import os
import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from .cluster_record import FILE_NAME, NodeRecord, read_record, write_record
from .errors import ClusterError, NodeFailedError
from .folder_lock import FolderLock
from .held_signals import stop_signals_held
from .local_node import (
    HOST,
    START_COMMAND,
    LocalNode,
    environment_without_properties,
    variables_of_properties,
)
from .new_files import NewFiles
from .ports import PORT_MAX, check_free, find_free
from .preloaded_nodes import FOR_SEVERAL, NODE, PreloadedNodes, PreloadedStart
from .processes import ProcessId
from .quorum_settings import QUORUM_KEYS, check_voters, joining_settings, quorum_settings
from .readiness import wait_ready

# What the cluster itself decides for each node.
CLUSTER_KEYS: Final = frozenset({"node.id", "listeners", "admin.listeners", "log.dir", "log.dirs"})
START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 60.0


class LocalCluster:
    """Nodes 1 to N of one cluster in one folder: `node-1/` is the data of node 1; its log and properties are beside it.

    Other people's tests may want ids from 0: `first_node_id`.

    Every method waits until it is done, at most as long as its timeout. Not safe to share between threads.
    """

    def __init__(
        self,
        folder: Path,
        *,
        node_count: int = 1,
        first_node_id: int = 1,
        first_port: int = 0,
        properties: Mapping[str, str] | None = None,
        properties_of: Callable[[LocalNode], Mapping[str, str]] | None = None,
        environment: Mapping[str, str] | None = None,
        hosts: Mapping[int, str] | None = None,
        rewire: Callable[[LocalNode, Mapping[str, str]], Mapping[str, str]] = lambda _node, told: told,
        ends_with_parent: bool = False,
        preloaded: PreloadedNodes | None = None,
    ) -> None:
        """Nothing is started yet. Nodes listen on `first_port` and the ports after it; 0 takes free ports.

        `hosts` are addresses of some nodes by id, of those that join later too, that do not listen on the loopback.

        `properties` are Kafka's broker properties, for all nodes; `properties_of` one of them says what else it is
        started with; `rewire` is given all that a node is told, and returns what it is told instead, other listeners
        for instance. `environment` is this program's without the
        PENSTOCK_… variables, which are properties too. With `ends_with_parent` the nodes end when this program does, by
        SIGKILL too. `preloaded` was begun for the nodes of this cluster, which takes it over. Raises ClusterError,
        PortInUseError.
        """
        if node_count < 1:
            raise ClusterError(f"a cluster has at least one node, not {node_count}")
        self._settings = dict(properties or {})
        self._settings_of = properties_of or (lambda _node: {})
        self._rewire = rewire
        self._hosts = dict(hosts or {})
        for key in sorted(decided_keys(node_count) & self._settings.keys()):
            raise ClusterError(f"{key} is decided by the local cluster for each node and cannot be set")
        self.folder = folder.resolve()
        _check_path(self.folder)
        _check_none_runs(self.folder)
        self._lock = FolderLock(self.folder)
        node_environment = environment_without_properties(os.environ) if environment is None else environment
        if first_port and first_port + node_count - 1 > PORT_MAX:
            raise ClusterError(f"{node_count} nodes from port {first_port} on need ports above {PORT_MAX}")
        generator = random.Random()
        ports = [first_port + index if first_port else find_free(generator) for index in range(node_count)]
        self.nodes = {
            node_id: LocalNode(
                id=node_id,
                port=port,
                data=self.folder / f"node-{node_id}",
                environment=node_environment,
                host=self._hosts.get(node_id, HOST),
                admin_port=find_free(generator),
                ends_with_parent=ends_with_parent,
            )
            for node_id, port in enumerate(ports, start=first_node_id)
        }
        self._quorum_settings = quorum_settings(tuple(self.nodes.values()), generator)
        self._preloaded = preloaded

    @classmethod
    def attach(cls, folder: Path) -> Self | None:
        """The cluster that was started in this folder, running or not; None when there never was one.

        Raises UnreadableRecordError.
        """
        nodes = _recorded_nodes(folder.resolve())
        if not nodes:
            return None
        cluster = cls.__new__(cls)
        cluster.folder = folder.resolve()
        cluster._lock = FolderLock(cluster.folder)
        cluster._settings = {}
        cluster._settings_of = lambda _node: {}
        cluster._rewire = lambda _node, told: told
        cluster._hosts = {}
        cluster._quorum_settings = {}
        cluster._preloaded = None
        cluster.nodes = {node.id: node for node in nodes}
        return cluster

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return ",".join(node.address for node in self.nodes.values())

    @property
    def controller_addresses(self) -> tuple[str, ...]:
        """Where the nodes that are controllers listen as such; empty for a single node, which has no such listener."""
        told = next(iter(self._quorum_settings.values()), {})
        return tuple(voter.partition("@")[2] for voter in told.get("controller.quorum.voters", "").split(",") if voter)

    @property
    def is_running(self) -> bool:
        """Whether any node is."""
        return any(node.is_running for node in self.nodes.values())

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts all nodes and waits until they serve clients.

        Raises NodeFailedError, PortInUseError or ClusterError, with nothing left running, and the disk as it was.
        """
        if self.is_running:
            raise ClusterError(f"the cluster in {self.folder} is running already")
        quorum_of = self._quorum_settings.get
        check_voters(tuple(self.nodes.values()), lambda node: {**self._settings, **quorum_of(node.id, {})})
        made = NewFiles(self.folder)
        try:
            self._preload()
            for node in self.nodes.values():
                check_free(node.port)
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._lock.held():
                # Another program may have been faster.
                _check_none_runs(self.folder)
                nodes = self.nodes.values()
                made.note(
                    (path for node in nodes for path in (node.data, node.log)),
                    (self.folder / FILE_NAME, *(node.properties for node in nodes)),
                )
                write_record(self.folder, tuple(map(_record_of, nodes)))
                for node in nodes:
                    quorum = self._quorum_settings.get(node.id, {})
                    node.write_properties(self._rewire(node, {**self._settings, **self._settings_of(node), **quorum}))
                    self._start(node)
            self.wait_ready(timeout_s=timeout_s)
        except BaseException as error:
            self._undo(made)
            if isinstance(error, OSError):
                raise ClusterError(f"{error.filename or self.folder} cannot be used: {error.strerror}") from error
            if isinstance(error, NodeFailedError) and error.log is not None and not error.log.exists():
                error.log = None
            raise

    def _undo(self, made: NewFiles) -> None:
        """Of a start that failed."""
        with stop_signals_held(), self._lock.held() if self.folder.is_dir() else nullcontext():
            for node in self.nodes.values():
                node.kill()
            self._end_preloaded()
            made.remove()

    def wait_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Waits until every node answers clients and knows all others. Raises NodeFailedError."""
        wait_ready(tuple(self.nodes.values()), timeout_s=timeout_s)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stops all nodes gracefully. Raises the first NodeFailedError after all have been told and waited for."""
        failures = []
        for node in self.nodes.values():
            node.is_down = False
        # All at once: a controller answers those that tell it that they go only as long as a majority is there.
        for node in reversed(self.nodes.values()):
            node.begin_stop()
        for node in self.nodes.values():
            try:
                node.finish_stop(timeout_s=timeout_s)
            except NodeFailedError as failure:
                failures.append(failure)
        self._record(*self.nodes.values())
        self._end_preloaded()
        if failures:
            raise failures[0]

    def kill(self) -> None:
        """SIGKILL to all nodes."""
        with stop_signals_held():
            for node in self.nodes.values():
                node.is_down = False
                node.kill()
            self._record(*self.nodes.values())
            self._end_preloaded()

    def start_node(self, node_id: int, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts one node that was stopped or killed, on the port it had, and waits until it serves clients."""
        self.begin_start(node_id)
        wait_ready((self.nodes[node_id],), timeout_s=timeout_s)

    def begin_start(self, node_id: int) -> None:
        """Starts one node as `start_node` does, and returns at once. Raises NodeFailedError, PortInUseError."""
        node = self.nodes[node_id]
        if not node.is_running:
            check_free(node.port)
        self._start(node)

    def missing_voters(self) -> tuple[int, ...]:
        """The controllers that do not run, when those that run are no majority; by the properties of the nodes."""
        voter_ids = next((ids for node in self.nodes.values() if (ids := node.voter_ids())), ())
        down = tuple(one for one in voter_ids if one not in self.nodes or not self.nodes[one].is_running)
        return down if 2 * (len(voter_ids) - len(down)) <= len(voter_ids) else ()

    def add_node(self, *, timeout_s: float = START_TIMEOUT_S) -> LocalNode:
        """Starts one more broker, which is no controller, and waits until it serves clients and knows all others;
        those that were stopped, killed or paused are waited for by who did that.

        Raises ClusterError when this program did not start the cluster, or started it as a node alone; else as `start`.
        """
        first = next(iter(self.nodes.values()))
        if first.id not in self._quorum_settings:
            raise ClusterError(
                f"no node can be added to the cluster in {self.folder}: how to join it is not known here"
            )
        node_id = max(self.nodes) + 1
        node = LocalNode(
            id=node_id,
            port=find_free(random.Random()),
            data=self.folder / f"node-{node_id}",
            environment=first.environment,
            host=self._hosts.get(node_id, HOST),
            admin_port=find_free(random.Random()),
            ends_with_parent=first.ends_with_parent,
        )
        joining = joining_settings(self._quorum_settings[first.id])
        node.write_properties(self._rewire(node, {**self._settings, **self._settings_of(node), **joining}))
        self.nodes[node_id] = node
        self._start(node)
        up = tuple(one for one in self.nodes.values() if not one.is_down and not one.is_paused)
        wait_ready(up, timeout_s=timeout_s)
        return node

    def forget_node(self, node_id: int) -> None:
        """A broker that has left and was stopped is no part of the cluster any more; its data stay where they are.

        Raises ClusterError for one that runs, and for a controller.
        """
        if self.nodes[node_id].is_running:
            raise ClusterError(f"node {node_id} is running: it is a part of the cluster")
        if node_id in self._quorum_settings and self._quorum_settings[node_id]["process.roles"] != "broker":
            raise ClusterError(f"node {node_id} is a controller: without it the cluster would not start again")
        del self.nodes[node_id]
        self._record(forgotten_id=node_id)

    def stop_node(self, node_id: int, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        self._mark_down(node_id)
        self.nodes[node_id].stop(timeout_s=timeout_s)

    def kill_node(self, node_id: int) -> None:
        self._mark_down(node_id)
        self.nodes[node_id].kill()

    def _mark_down(self, node_id: int) -> None:
        """First, so that a program that looks after the cluster knows it when the process ends."""
        self.nodes[node_id].is_down = True
        self._record(self.nodes[node_id])

    def follow_record(self) -> None:
        """Takes in what another program did to single nodes. Raises UnreadableRecordError."""
        for record in read_record(self.folder) or ():
            if record.id in self.nodes:
                self.nodes[record.id].follow(_process_of(record), is_down=record.is_down)

    def empty_node(self, node_id: int) -> None:
        """Take all data of a node that does not run: it begins anew, as a new machine under the same id does."""
        node = self.nodes[node_id]
        if node.is_running:
            raise ClusterError(f"node {node_id} is running, and its data are in use")
        shutil.rmtree(node.data)

    def pause_node(self, node_id: int) -> None:
        self.nodes[node_id].pause()

    def resume_node(self, node_id: int) -> None:
        self.nodes[node_id].resume()

    def restart_node(self, node_id: int, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """A graceful stop and a start."""
        self.stop_node(node_id, timeout_s=timeout_s)
        self.start_node(node_id, timeout_s=timeout_s)

    def description(self) -> dict[str, object]:
        """For `--json`: where clients connect, and each node."""
        return {
            "bootstrap": self.bootstrap,
            "nodes": [
                {
                    "id": node.id,
                    "pid": node.process.pid if node.process is not None and node.is_running else None,
                    "port": node.port,
                    "admin": node.admin,
                    "data": str(node.data),
                }
                for node in self.nodes.values()
            ],
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _preload(self) -> None:
        """Several nodes load their code once."""
        if len(self.nodes) == 1:
            return
        if self._preloaded is None:
            first = next(iter(self.nodes.values()))
            self._preloaded = PreloadedNodes(NODE, first.environment, ends_with_parent=first.ends_with_parent)
        self._preloaded.load(FOR_SEVERAL)

    def _start(self, node: LocalNode) -> None:
        """Raises NodeFailedError."""
        preloaded = self._preloaded
        if node.command == START_COMMAND and (node.start_by is None or isinstance(node.start_by, PreloadedStart)):
            node.start_by = (
                PreloadedStart(preloaded=preloaded, ends_with_this=node.ends_with_parent)
                if preloaded is not None and preloaded.is_running and preloaded.environment == node.environment
                else None
            )
        # A process that is in no record could not be found again.
        with stop_signals_held():
            node.start()
            self._record(node)

    def _end_preloaded(self) -> None:
        preloaded, self._preloaded = self._preloaded, None
        if preloaded is not None:
            for node in self.nodes.values():
                if isinstance(node.start_by, PreloadedStart) and node.start_by.preloaded is preloaded:
                    # Who has the node may start it again, without the cluster.
                    node.leave_starter()
            preloaded.end()

    def _record(self, *changed: LocalNode, forgotten_id: int | None = None) -> None:
        """What other programs did to other nodes stays as they wrote it."""
        with self._lock.held():
            known = {record.id: record for record in read_record(self.folder) or ()}
            known.update((node.id, _record_of(node)) for node in changed)
            if forgotten_id is not None:
                known.pop(forgotten_id, None)
            write_record(self.folder, tuple(record for _, record in sorted(known.items())))


def decided_keys(node_count: int) -> frozenset[str]:
    """The properties that a cluster of so many nodes decides itself."""
    return CLUSTER_KEYS | QUORUM_KEYS if node_count > 1 else CLUSTER_KEYS


def _check_path(folder: Path) -> None:
    """Raises ClusterError."""
    if "," in str(folder):
        raise ClusterError(f"{folder} has a comma in it: log.dirs would take it for two folders")
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise ClusterError(f"the path {os.fsencode(folder)!r} is no text in UTF-8, as properties are") from None


def _check_none_runs(folder: Path) -> None:
    """Raises ClusterError, UnreadableRecordError."""
    running = [node for node in _recorded_nodes(folder) if node.is_running]
    if running:
        addresses = ",".join(node.address for node in running)
        raise ClusterError(f"a cluster is already running in {folder} (bootstrap {addresses})")


def _record_of(node: LocalNode) -> NodeRecord:
    return NodeRecord(
        id=node.id,
        port=node.port,
        pid=node.process.pid if node.process is not None else None,
        started=node.process.started if node.process is not None else None,
        admin_port=node.admin_port,
        is_down=node.is_down,
        variables=variables_of_properties(node.environment),
    )


def _process_of(record: NodeRecord) -> ProcessId | None:
    if record.pid is None or record.started is None:
        return None
    return ProcessId(pid=record.pid, started=record.started)


def _recorded_nodes(folder: Path) -> list[LocalNode]:
    return [
        LocalNode(
            id=record.id,
            port=record.port,
            admin_port=record.admin_port,
            data=folder / f"node-{record.id}",
            environment={**environment_without_properties(os.environ), **record.variables},
            process=_process_of(record),
            is_down=record.is_down,
        )
        for record in read_record(folder) or ()
    ]
