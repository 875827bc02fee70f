"""Three real nodes and connections without the secret: refused, logged a little, nothing executed or disturbed."""

import base64
import json
import os
import random
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import cbor2
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.add_partitions_to_txn.v5.request import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.fetch.v17.request import FetchRequest, ReplicaState
from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest
from kio.schema.types import BrokerId, ProducerId, TopicName, TransactionalId
from kio.schema.write_txn_markers.v1.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import i16, i32, i32Timedelta, i64

from penstock.client import clock
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode
from penstock.local.ports import find_free
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NodeId
from penstock.protocol.messages import Request, decode_response, encode_request
from penstock.quorum.links.rules.link_frames import encode_frame
from penstock.quorum.links.rules.link_hello import PREFACE, DialerHello
from penstock.quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello, client_proof

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HOST = "127.0.0.1"
DEADLINE_S = 30.0
ROUNDS = 20
# Log lines that strangers may cause: one a second and host from Kafka's side, some tens in ten seconds from the links.
LINES_MAX = 150
GROWTH_KIB_MAX = 24 * 1024


def settings_of(node: LocalNode) -> dict[str, str]:
    lines = node.properties.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


class Target:
    """A cluster of three controllers, and what a stranger may know of it."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        settings = settings_of(cluster.nodes[1])
        self.secret = settings["cluster.secret"].encode()
        self.cluster_id = settings["cluster.id"]
        voters = (entry.split("@") for entry in settings["controller.quorum.voters"].split(","))
        self.ports = {int(node_id): int(address.rpartition(":")[2]) for node_id, address in voters}

    def directory_id(self, node_id: int) -> UUID:
        text = (self.cluster.nodes[node_id].data / "meta.properties").read_text()
        value = next(line.partition("=")[2] for line in text.splitlines() if line.startswith("directory.id="))
        return UUID(bytes=base64.urlsafe_b64decode(value + "=="))

    def leadership(self) -> tuple[int, int]:
        command = [sys.executable, "-P", "-m", "penstock", "quorum", "status", "--json", "--bootstrap"]
        told = subprocess.run([*command, self.cluster.bootstrap], check=True, capture_output=True)
        state = json.loads(told.stdout)
        return state["leader_id"], state["epoch"]

    def line_counts(self) -> dict[int, int]:
        return {node.id: len(node.log.read_text().splitlines()) for node in self.cluster.nodes.values()}

    def resident_kib(self, node_id: int) -> int:
        process = self.cluster.nodes[node_id].process
        assert process is not None
        status = Path(f"/proc/{process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

    def create(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(DEADLINE_S)

    def hello(self, node_id: int, *, cluster_id: str | None = None, directory_id: UUID | None = None) -> PeerHello:
        return PeerHello(
            node_id=NodeId(node_id),
            directory_id=self.directory_id(node_id) if directory_id is None else directory_id,
            cluster_id=self.cluster_id if cluster_id is None else cluster_id,
            nonce=random.Random().randbytes(NONCE_BYTES),
        )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with LocalCluster(tmp_path_factory.mktemp("target"), node_count=3) as cluster:
        yield Target(cluster)


@pytest.fixture
def undisturbed(target: Target) -> Iterator[None]:
    """Around strangers: the same leader in the same epoch, flat memory, few lines, and metadata that can change."""
    leadership, lines = target.leadership(), target.line_counts()
    resident = {node_id: target.resident_kib(node_id) for node_id in target.ports}
    yield
    assert target.leadership() == leadership
    for node_id, count in target.line_counts().items():
        assert count - lines[node_id] < LINES_MAX
        assert target.resident_kib(node_id) - resident[node_id] < GROWTH_KIB_MAX
        assert "Traceback" not in target.cluster.nodes[node_id].log.read_text()
    target.create(f"after-{os.getpid()}-{next(_numbers)}")


_numbers = iter(range(1_000))


def said(port: int, *chunks: bytes) -> bytes:
    """Sends the chunks and returns what comes until the other side hangs up."""
    answer = b""
    with socket.create_connection((HOST, port), timeout=DEADLINE_S) as connection:
        try:
            for chunk in chunks:
                connection.sendall(chunk)
            while received := connection.recv(65_536):
                answer += received
        except (ConnectionError, BrokenPipeError):
            pass
    return answer


def frame_of(connection: socket.socket) -> bytes:
    """The next frame of a link; empty when the other side hung up."""
    try:
        head = connection.recv(4, socket.MSG_WAITALL)
        return connection.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""
    except ConnectionError:
        return b""


def greet(port: int, hello: PeerHello, secret: bytes, *frames: bytes) -> None:
    """Proves what it can, then sends frames, until the other side hangs up."""
    dialer = DialerHello(hello, secret, NodeId(-1))
    with socket.create_connection((HOST, port), timeout=DEADLINE_S) as connection:
        connection.sendall(PREFACE + encode_frame(dialer.first))
        answer = frame_of(connection)
        if not answer:
            return
        try:
            encoded, _ = cbor2.loads(answer)
        except ValueError:
            return
        try:
            connection.sendall(encode_frame(client_proof(secret, dialer.first, encoded)))
            for frame in frames:
                connection.sendall(encode_frame(frame))
            while connection.recv(65_536):
                pass
        except ConnectionError:
            pass


@pytest.mark.usefixtures("undisturbed")
def test_pickles_garbage_and_huge_frames_are_hung_up_on(target: Target, tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.SystemRandom().randrange(2**32)))
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}\n")
    generator = random.Random(seed)
    marker = tmp_path / "executed"
    pickle = b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR."
    payloads = [
        [pickle],
        [struct.pack(">I", len(pickle)) + pickle],
        [PREFACE + pickle],
        [PREFACE + encode_frame(pickle)],
        [PREFACE, encode_frame(cbor2.dumps(["append_entries", pickle]))],
        [PREFACE + b"\xff\xff\xff\xff", bytes(1 << 20)],
        [struct.pack(">i", 2**31 - 1), bytes(1 << 20)],
        [b"\xff" * 1_000],
        [PREFACE[:-1] + b"9" + bytes(100)],
        [b"\x80\x04\x95" + bytes(200)],
    ]
    for _ in range(ROUNDS):
        for port in target.ports.values():
            for chunks in payloads:
                said(port, *chunks)
            said(port, PREFACE + generator.randbytes(generator.randrange(1, 3_000)))
            # What begins with zeros is the start of a small frame that may never end: it is not waited for.
            said(port, b"\x7f" + generator.randbytes(generator.randrange(8, 3_000)))
    assert not marker.exists()


@pytest.mark.usefixtures("undisturbed")
def test_who_is_no_voter_of_this_cluster_is_not_linked(target: Target) -> None:
    wrong = b"a guess"
    for _ in range(ROUNDS):
        for node_id, port in target.ports.items():
            other = next(peer_id for peer_id in target.ports if peer_id != node_id)
            greet(port, target.hello(other, cluster_id="cAnotherClusterOfNodes"), target.secret)
            greet(port, target.hello(other), wrong)
            greet(port, target.hello(99, directory_id=UUID(int=1)), target.secret)
            greet(port, target.hello(node_id), target.secret)
            # Another disk under the id of a voter that is there.
            greet(port, target.hello(other, directory_id=UUID(int=77)), target.secret)
            greet(port, target.hello(other, directory_id=target.directory_id(node_id)), target.secret)

    def is_told() -> bool:
        # A host has one line in ten seconds, which others of it may have used up.
        greet(target.ports[1], target.hello(2, cluster_id="cAnotherClusterOfNodes"), target.secret)
        log = target.cluster.nodes[1].log.read_text()
        return "belongs to cluster cAnotherClusterOfNodes, this node to cluster " in log

    assert clock.wait_until(is_told, timeout_s=DEADLINE_S, interval_s=0.5)


@pytest.mark.usefixtures("undisturbed")
def test_absurd_fields_end_the_link_of_one_that_knows_the_secret(target: Target) -> None:
    absurd = [
        [3, -1],
        [3, 2**63],
        [3, 2**31],
        [0, -5, 0, 0, 0, []],
        [0, 1, 2**63, 0, 0, []],
        [0, 1, -(2**63), 0, 0, []],
        [0, 1, 0, 0, 0, [[1, bytes(1024 * 1024 + 1)]]],
        [0, 1, 0, 0, 0, [[-1, b""]]],
        [1, 1, 2**64, True, True, 0],
        [13, 1, 5, 2**40, 0, [b"x"], 0, True],
        [99, 1],
        "append_entries",
    ]
    leader_id, _ = target.leadership()
    for node_id, port in target.ports.items():
        # The leader is heard on the link that would be taken over: it would have to dial again.
        voice = next(peer_id for peer_id in target.ports if peer_id not in (node_id, leader_id))
        for fields in absurd:
            greet(port, target.hello(voice), target.secret, cbor2.dumps(fields))
        assert f"the link of node {voice} is closed: " in target.cluster.nodes[node_id].log.read_text()


def forged_requests() -> list[tuple[Request, int]]:
    """What only nodes may ask, with versions."""
    wait = i32Timedelta.parse(timedelta(0))
    return [
        (
            FetchRequest(
                cluster_id=None,
                replica_state=ReplicaState(replica_id=BrokerId(2), replica_epoch=i64(1)),
                max_wait=wait,
                min_bytes=i32(0),
                max_bytes=i32(1_000),
                topics=(),
                forgotten_topics_data=(),
            ),
            17,
        ),
        (AlterPartitionRequest(broker_id=BrokerId(2), broker_epoch=i64(1), topics=()), 3),
        (
            BrokerRegistrationRequest(
                broker_id=BrokerId(2),
                cluster_id="cAnotherClusterOfNodes",
                incarnation_id=UUID(int=5),
                listeners=(),
                features=(),
                rack=None,
            ),
            4,
        ),
        (
            BrokerHeartbeatRequest(
                broker_id=BrokerId(2),
                broker_epoch=i64(1),
                current_metadata_offset=i64(2**62),
                want_fence=True,
                want_shut_down=True,
            ),
            1,
        ),
        (AllocateProducerIdsRequest(broker_id=BrokerId(2), broker_epoch=i64(1)), 0),
        (FetchSnapshotRequest(cluster_id=None, replica_id=BrokerId(2), max_bytes=i32(1_000), topics=()), 1),
        (
            WriteTxnMarkersRequest(
                markers=(
                    WritableTxnMarker(
                        producer_id=ProducerId(1),
                        producer_epoch=i16(0),
                        transaction_result=True,
                        topics=(WritableTxnMarkerTopic(name=TopicName("t"), partition_indexes=(i32(0),)),),
                        coordinator_epoch=i32(0),
                    ),
                )
            ),
            1,
        ),
        (
            AddPartitionsToTxnRequest(
                transactions=(
                    AddPartitionsToTxnTransaction(
                        transactional_id=TransactionalId("t"),
                        producer_id=ProducerId(1),
                        producer_epoch=i16(0),
                        verify_only=True,
                        topics=(),
                    ),
                )
            ),
            5,
        ),
    ]


def codes(answer: object) -> set[int]:
    found = getattr(answer, "error_code", None)
    own = {int(found)} if found is not None else set()
    for name in getattr(answer, "__slots__", ()):
        items = getattr(answer, name)
        if isinstance(items, tuple):
            own = own.union(*(codes(item) for item in items))
    return own - {0}


@pytest.mark.usefixtures("undisturbed")
def test_a_forged_node_is_refused_on_every_listener(target: Target) -> None:
    refused: set[str] = set()
    ports = [*target.ports.values(), *(node.port for node in target.cluster.nodes.values())]
    for port in ports:
        for request, version in forged_requests():
            data = encode_request(request.__api_key__, version, 7, "node-2", request)
            with socket.create_connection((HOST, port), timeout=DEADLINE_S) as connection:
                connection.sendall(data)
                answer = frame_of(connection)
            # What a listener does not serve to anyone it hangs up on.
            if answer:
                _, response = decode_response(request.__api_key__, version, answer)
                assert codes(response) == {int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)}, (port, response)
                refused.add(type(request).__name__)
    assert refused >= {
        "FetchRequest",
        "AlterPartitionRequest",
        "BrokerRegistrationRequest",
        "BrokerHeartbeatRequest",
        "AllocateProducerIdsRequest",
        "FetchSnapshotRequest",
    }


def test_two_clusters_side_by_side_and_nodes_that_are_pointed_at_the_wrong_one(target: Target, tmp_path: Path) -> None:
    """Only the id of the cluster differs: they know the secret."""
    with LocalCluster(tmp_path / "other", node_count=3) as cluster:
        other = Target(cluster)
        before = target.leadership(), other.leadership()
        other.create("flights")
        settings = settings_of(target.cluster.nodes[1])
        shared = {
            "cluster.secret": settings["cluster.secret"],
            "cluster.id": other.cluster_id,
            "initial.broker.registration.timeout.ms": "2000",
        }
        broker = LocalNode(id=9, port=find_free(random.Random()), data=tmp_path / "node-9", environment=os.environ)
        broker.write_properties(
            {
                **shared,
                "process.roles": "broker",
                "controller.quorum.voters": settings["controller.quorum.voters"],
                "controller.listener.names": "CONTROLLER",
            }
        )
        voters = dict(entry.split("@") for entry in settings["controller.quorum.voters"].split(","))
        own_address = f"{HOST}:{find_free(random.Random())}"
        voters["3"] = own_address
        controller = LocalNode(id=3, port=find_free(random.Random()), data=tmp_path / "node-3", environment=os.environ)
        controller.write_properties(
            {
                **shared,
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://{HOST}:{controller.port},CONTROLLER://{own_address}",
                "controller.quorum.voters": ",".join(f"{voter_id}@{address}" for voter_id, address in voters.items()),
                "controller.listener.names": "CONTROLLER",
            }
        )
        broker.start()
        controller.start()
        for node in (broker, controller):
            assert clock.wait_until(lambda node=node: not node.is_running, timeout_s=60, interval_s=0.1)  # type: ignore[misc]
            assert node.exit_status == 2
            told = node.log.read_text()
            sentence = f"node {node.id} belongs to cluster {other.cluster_id}, this node to cluster {target.cluster_id}"
            # At once, in its log, and last, as the reason of its end.
            assert sentence in told
            assert told.splitlines()[-1].startswith("penstock: ")
            assert sentence in told.splitlines()[-1]
            assert len(told.splitlines()) < 100
        assert (target.leadership(), other.leadership()) == before
        assert "flights" not in AdminClient({"bootstrap.servers": target.cluster.bootstrap}).list_topics().topics
        assert "flights" in AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics().topics
