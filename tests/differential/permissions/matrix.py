"""Plays the matrix against a broker: makes what the questions are about, the ACLs, and asks."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from differential.permissions.cells import Place, bindings
from differential.permissions.layout import Layout, Phase
from differential.permissions.outcome import outcome
from differential.permissions.probes import FRIEND, Cell, Probe
from differential.permissions.session import Session
from differential.target import ClosedError

from penstock.protocol.apis import ApiKey

ADMIN = "admin"
Row = dict[str, dict[str, str]]
"""By resource, then by state: the outcome."""

SETTLE_TIMEOUT_S = 60.0
_POLL_S = 0.01
TIMEOUT_MS = 30_000
ACLS_IN_A_REQUEST = 2_000
TOPICS_IN_A_REQUEST = 200
# The ACL that is made last, so that who sees it sees all.
LAST_ACL = {
    "resource_type": 2,
    "resource_name": "last",
    "resource_pattern_type": 3,
    "principal": "User:last",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


class Matrix:
    """The questions to one broker, each asked once."""

    def __init__(self, address: tuple[str, int], controller: tuple[str, int], layout: Layout) -> None:
        self._address = address
        self._controller = controller
        self._phases = layout.phases
        self._cells = layout.places
        self._sessions: dict[tuple[str, bool], Session] = {}
        self._ids: dict[str, UUID] = {}
        self._tokens: dict[str, str] = {}
        self._outcomes: dict[tuple[str, str], str] = {}
        self._lively: set[str] = set()
        self._base_ms = time.time_ns() // 1_000_000
        self.served: frozenset[int] = frozenset()
        self.acl_count = 0

    def __enter__(self) -> Self:
        self.prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self) -> None:
        """Everything that is there before the first question."""
        admin = self._session(ADMIN)
        self.served = frozenset(one["api_key"] for one in admin.ask(ApiKey.API_VERSIONS, _SOFTWARE)["api_keys"])
        self._make_topics(admin)
        self._make_groups(admin)
        self._make_tokens(admin)
        for phase in self._phases:
            self._make_acls(admin, phase)
            self._ask([cell for cell in phase.asked if self.is_served(cell.probe)])

    def row_of(self, probe: Probe) -> Row:
        """The outcomes of one question in all cells. It is asked once, for some answers change what is asked about."""
        cells = [cell for cell in self._cells if cell.probe is probe]
        self._ask(cells)
        row: Row = {}
        for cell in cells:
            row.setdefault(cell.row, {})[cell.subject.state.name] = self._outcomes[cell.key]
        return row

    def is_served(self, probe: Probe) -> bool:
        """What the broker's listener does not tell of is not asked there; a controller's tells nothing of itself."""
        return probe.key in self.served or probe.is_internal

    def _ask(self, cells: Sequence[Place]) -> None:
        """Each cell that has not been asked yet."""
        left = [cell for cell in cells if cell.key not in self._outcomes]
        for cell in left:
            if cell.name not in self._lively:
                self._lively.add(cell.name)
                self._make_lively(cell.probe, cell.name)
        for cell in left:
            self._outcomes[cell.key] = self._outcome(cell)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _outcome(self, place: Place) -> str:
        probe, cell = place.probe, self._cell(place.name)
        session = self._session(place.subject.user, on_controller=probe.on_controller)
        words = cell.own_words
        if probe.key is ApiKey.CREATE_DELEGATION_TOKEN:
            words[place.subject.user] = "user"
        for name in (cell.topic, FRIEND):
            words[str(cell.ids[name])] = f"id of {words[name]}" if name in self._ids else "unknown id"
            if name in self._ids:
                words[base64.urlsafe_b64encode(self._ids[name].bytes).decode().rstrip("=")] = f"id of {words[name]}"
        try:
            return outcome(session.ask(probe.key, probe.request(cell), probe.version), words, probe.shows)
        except ClosedError:
            return "the connection is closed"

    def _cell(self, name: str) -> Cell:
        return Cell(name=name, ids=_Ids(self._ids), base_ms=self._base_ms)

    def _session(self, user: str, *, on_controller: bool = False) -> Session:
        key = (user, on_controller)
        if key not in self._sessions:
            address = self._controller if on_controller else self._address
            self._sessions[key] = Session(address, user)
        return self._sessions[key]

    def _names(self, thing: str) -> Iterator[Cell]:
        """The cells whose question needs such a thing, one for each name."""
        names = dict.fromkeys(cell.name for cell in self._cells if thing in cell.probe.makes)
        return (self._cell(name) for name in names)

    def _make_topics(self, admin: Session) -> None:
        names = [FRIEND, *(cell.topic for cell in self._names("topic"))]
        for some in _batches(names, TOPICS_IN_A_REQUEST):
            wanted = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in some]
            made = admin.ask(ApiKey.CREATE_TOPICS, {"topics": wanted, "timeout": TIMEOUT_MS})
            for topic in made["topics"]:
                assert topic["error_code"] == 0, topic
                self._ids[topic["name"]] = topic["topic_id"]

        def are_led() -> bool:
            answer = admin.ask(
                ApiKey.LIST_OFFSETS,
                {
                    "replica_id": -1,
                    "topics": [
                        {
                            "name": name,
                            "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}],
                        }
                        for name in names
                    ],
                },
            )
            return all(one["partitions"][0]["error_code"] == 0 for one in answer["topics"])

        _wait_for(are_led)

    def _make_groups(self, admin: Session) -> None:
        for kind, key in ((0, FRIEND), (1, FRIEND)):
            _wait_for(
                lambda kind=kind, key=key: (
                    admin.ask(  # type: ignore[misc]
                        ApiKey.FIND_COORDINATOR, {"key_type": kind, "coordinator_keys": [key]}
                    )["coordinators"][0]["error_code"]
                    == 0
                )
            )
        groups = [(FRIEND, None), *((cell.group, cell.topic) for cell in self._names("group"))]
        for group, topic in groups:
            topics = [name for name in (FRIEND, topic) if name in self._ids]
            asked = [
                {
                    "topic_id": self._ids[name],
                    "partitions": [
                        {
                            "partition_index": 0,
                            "committed_offset": 7,
                            "committed_leader_epoch": -1,
                            "committed_metadata": "",
                        }
                    ],
                }
                for name in topics
            ]
            values = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": asked}

            def is_committed(values: Mapping[str, Any] = values) -> bool:
                found = admin.ask(ApiKey.OFFSET_COMMIT, values)["topics"]
                return all(one["partitions"][0]["error_code"] == 0 for one in found)

            _wait_for(is_committed)
        _wait_for(lambda: self._begin(admin, FRIEND)["error_code"] == 0)

    @staticmethod
    def _begin(admin: Session, transactional_id: str) -> dict[str, Any]:
        return admin.ask(
            ApiKey.INIT_PRODUCER_ID,
            {
                "transactional_id": transactional_id,
                "transaction_timeout": 600_000,
                "producer_id": -1,
                "producer_epoch": -1,
            },
        )

    def _make_tokens(self, admin: Session) -> None:
        if ApiKey.CREATE_DELEGATION_TOKEN not in self.served:
            return
        for cell in self._names("token"):
            made = admin.ask(
                ApiKey.CREATE_DELEGATION_TOKEN,
                {
                    "owner_principal_type": "User",
                    "owner_principal_name": cell.owner,
                    "renewers": [],
                    "max_lifetime": 3_600_000,
                },
            )
            assert made["error_code"] == 0, made
            self._tokens[cell.owner] = made["token_id"]

    def _make_acls(self, admin: Session, phase: Phase) -> None:
        cells = [cell for cell in phase.cells if self.is_served(cell.probe)]
        found = [
            *bindings(cells, lambda cell, kind: self._cell(cell.name).resource(kind, self._tokens)),
            *phase.others,
        ]
        self.acl_count += len(found)
        last = {**LAST_ACL, "host": f"192.0.2.{self.acl_count % 250}"}
        for some in _batches([*found, last], ACLS_IN_A_REQUEST):
            for asked, made in zip(some, admin.ask(ApiKey.CREATE_ACLS, {"creations": some})["results"], strict=True):
                assert made["error_code"] == 0, (asked, made)
        asked = {
            "resource_type_filter": 2,
            "resource_name_filter": "last",
            "pattern_type_filter": 3,
            "operation": 1,
            "permission_type": 1,
            "host_filter": last["host"],
        }
        _wait_for(lambda: bool(admin.ask(ApiKey.DESCRIBE_ACLS, asked)["resources"]))

    def _make_lively(self, probe: Probe, name: str) -> None:
        """What would not last until its question is asked."""
        cell, admin = self._cell(name), self._session(ADMIN)
        if "consumer-group" in probe.makes:
            joined = admin.ask(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                {
                    "group_id": cell.group,
                    "member_id": "BBBBBBBBBBBBBBBBBBBBBB",
                    "member_epoch": 0,
                    "rebalance_timeout": TIMEOUT_MS,
                    "subscribed_topic_names": [cell.topic],
                    "topic_partitions": [],
                },
            )
            assert joined["error_code"] == 0, joined
        if "transaction" in probe.makes:
            begun = self._begin(admin, cell.transactional_id)
            assert begun["error_code"] == 0, begun

            def is_added() -> bool:
                answer = admin.ask(
                    ApiKey.ADD_PARTITIONS_TO_TXN,
                    {
                        "v3_and_below_transactional_id": cell.transactional_id,
                        "v3_and_below_producer_id": begun["producer_id"],
                        "v3_and_below_producer_epoch": begun["producer_epoch"],
                        "v3_and_below_topics": [{"name": cell.topic, "partitions": [0]}],
                    },
                    3,
                )
                (topic,) = answer["results_by_topic_v3_and_below"]
                (partition,) = topic["results_by_partition"]
                return bool(partition["partition_error_code"] == 0)

            _wait_for(is_added)


_SOFTWARE = {"client_software_name": "penstock", "client_software_version": "1"}


class _Ids(dict[str, UUID]):
    """Ids of topics; one that is not there has an id that no topic has."""

    def __missing__(self, name: str) -> UUID:
        return UUID(int=sum(name.encode()) + 2**32)


def _batches(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + SETTLE_TIMEOUT_S
    while not condition():
        assert time.perf_counter() < deadline, "the broker does not settle"
        time.sleep(_POLL_S)  # noqa: TID251 - a broker in another process does not say when it is ready
