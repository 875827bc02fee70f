"""The script of operations: cases, each run once for every version of its API, and the transcript that a run leaves."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from differential import messages
from differential.normal_form import BEFORE_NOW_MS, Names, normal
from differential.target import ClosedError, Link, SilentError, Target
from kio.index import load_request_schema, load_response_schema

from penstock.protocol.apis import APIS, ApiKey, request_header_version, response_header_version

Play = Callable[["Run"], None]
Transcript = dict[str, dict[str, Any]]
"""By `case vN`, then by step: the answer in normal form, or how the connection ended."""

SETTLE_TIMEOUT_S = 60.0
SILENT_AFTER_S = 10.0
_POLL_S = 0.01
TIMEOUT_MS = 10_000
LATEST = -1
EARLIEST = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One play, and the versions in which it is played."""

    name: str
    key: ApiKey
    versions: tuple[int, ...]
    play: Play

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.label(version) for version in self.versions)

    def label(self, version: int) -> str:
        return f"{self.name} v{version}"


CASES: dict[str, Case] = {}


def case(key: ApiKey, *, versions: Sequence[int] | None = None) -> Callable[[Play], Play]:
    """Registers a play under its function's name; without versions it is played in all of them."""

    def register(play: Play) -> Play:
        name = play.__name__.replace("_", "-")
        assert name not in CASES, f"two cases are called {name}"
        api = APIS[key]
        chosen = range(api.min_version, api.max_version + 1) if versions is None else versions
        CASES[name] = Case(name=name, key=key, versions=tuple(chosen), play=play)
        return play

    return register


class Run:
    """One case in one version against one broker.

    `ask` is what is compared; everything else prepares it, in the latest version, or waits.
    """

    def __init__(self, case: Case, version: int, target: Target) -> None:
        self.case = case
        self.version = version
        self.base_ms = time.time_ns() // 1_000_000 - BEFORE_NOW_MS
        self.steps: dict[str, Any] = {}
        self.names = Names(self.base_ms, target.words)
        self.ids: dict[str, UUID] = {}
        self._target = target
        self._link: Link | None = None
        self._correlation_ids = itertools.count(1)

    def name(self, word: str = "t") -> str:
        """A topic name of this run's own."""
        return f"{self.case.name}.{self.version}.{word}"

    # What is compared.

    def ask(
        self, step: str, key: ApiKey | None = None, at: int | None = None, /, *, only_own: bool = False, **values: Any
    ) -> Any:
        """Asks, notes the answer under `step`, and gives it as it came; None when the connection was closed instead.

        Without a key it is the case's API, in the version of the run. With `only_own`, what is compared leaves out
        items that are named after something which this run did not make.
        """
        api = self.case.key if key is None else key
        version = at if at is not None else self.version if api == self.case.key else APIS[api].max_version
        try:
            answer = self._exchange(api, version, values)
        except ClosedError:
            self._note(step, {"connection": "closed"})
            self._hang_up()
            return None
        kept = _own(answer, f"{self.case.name}.{self.version}.") if only_own else answer
        self._note(step, {"api": f"{APIS[api].name} v{version}", "answer": kept})
        return answer

    def send(self, step: str, frame: bytes) -> None:
        """Sends a frame as it is and notes the answer's bytes, or how the connection ended."""
        self._hang_up()
        try:
            link = self._connected()
            link.send(frame)
            self._note(step, {"answer": link.receive(SILENT_AFTER_S)})
        except ClosedError:
            self._note(step, {"connection": "closed"})
        except SilentError:
            self._note(step, {"connection": "silent"})
        self._hang_up()

    def ask_without_answer(self, step: str, key: ApiKey, /, **values: Any) -> None:
        """For acks=0: notes whether the next answer is that of the next request, or the connection is closed."""
        try:
            link = self._connected()
            link.send(self._frame(key, self.version, next(self._correlation_ids), values))
            self._exchange(ApiKey.API_VERSIONS, 0, {})
            self._note(step, {"connection": "goes on"})
        except ClosedError:
            self._note(step, {"connection": "closed"})
            self._hang_up()

    def note(self, step: str, found: Any) -> None:
        """Notes a part of an answer that is not compared as a whole."""
        self._note(step, {"found": found})

    # What prepares.

    def quiet(self, key: ApiKey, at: int | None = None, /, **values: Any) -> Any:
        """An answer that is not compared."""
        return self._exchange(key, APIS[key].max_version if at is None else at, values)

    def create(self, word: str = "t", partitions: int = 1, **configs: object) -> str:
        """A topic of this run, ready to be used; gives its name. Configs with underscores for dots."""
        name = self.name(word)
        given = [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()]
        wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": given}
        (made,) = self.quiet(ApiKey.CREATE_TOPICS, topics=[wanted], timeout=TIMEOUT_MS)["topics"]
        assert made["error_code"] == 0, made
        self.settle(name, partitions)
        return name

    def settle(self, name: str, partitions: int = 1) -> None:
        """Waits until the topic is there with all partitions led, and learns its id."""
        wanted = [{"partition_index": index, "timestamp": LATEST} for index in range(partitions)]

        def is_led() -> bool:
            asked = {"name": name, "partitions": wanted}
            (topic,) = self.quiet(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[asked], timeout=TIMEOUT_MS)["topics"]
            return all(one["error_code"] == 0 for one in topic["partitions"])

        self.wait_for(is_led)
        asked = {"name": name, "topic_id": None}
        (topic,) = self.quiet(ApiKey.METADATA, topics=[asked], allow_auto_topic_creation=False)["topics"]
        self.ids[name] = topic["topic_id"]
        self.names.topic(topic["topic_id"], name)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        is_settled = self.wait_at_most(SETTLE_TIMEOUT_S, condition)
        assert is_settled, f"{self.case.label(self.version)}: the broker does not settle"

    def wait_at_most(self, timeout_s: float, condition: Callable[[], bool]) -> bool:
        """Whether it came true in that time."""
        deadline = time.perf_counter() + timeout_s
        while not condition():
            if time.perf_counter() > deadline:
                return False
            time.sleep(_POLL_S)  # noqa: TID251 - a broker in another process does not say when it is ready
        return True

    def wait_gone(self, name: str) -> None:
        def is_gone() -> bool:
            asked = {"name": name, "topic_id": None}
            (topic,) = self.quiet(ApiKey.METADATA, topics=[asked], allow_auto_topic_creation=False)["topics"]
            return bool(topic["error_code"] == 3)

        self.wait_for(is_gone)

    def produce_topic(self, name: str, *partitions: dict[str, Any]) -> dict[str, Any]:
        """A topic of a Produce request, by name and by id: each version takes what it knows."""
        return {"name": name, "topic_id": self.ids.get(name), "partition_data": list(partitions)}

    def fetch_topic(self, name: str, *partitions: dict[str, Any]) -> dict[str, Any]:
        """A topic of a Fetch request, likewise."""
        return {"topic": name, "topic_id": self.ids.get(name), "partitions": list(partitions)}

    def produced(self, name: str, records: bytes, partition: int = 0) -> Any:
        """Appends as preparation; gives the partition's answer, which must be without error."""
        topic = self.produce_topic(name, {"index": partition, "records": records})
        answer = self.quiet(ApiKey.PRODUCE, acks=-1, timeout=TIMEOUT_MS, topic_data=[topic])
        (found,) = answer["responses"][0]["partition_responses"]
        assert found["error_code"] == 0, found
        return found

    def producer_id(self) -> int:
        found = -1

        def has_one() -> bool:
            # A broker that has just started has no block of ids yet.
            nonlocal found
            found = int(self.quiet(ApiKey.INIT_PRODUCER_ID, transaction_timeout=60_000)["producer_id"])
            return found >= 0

        self.wait_for(has_one)
        return found

    def finish(self) -> dict[str, Any]:
        """The steps in normal form, now that all names are known."""
        self._hang_up()
        return {step: normal(noted, self.names) for step, noted in self.steps.items()}

    def _note(self, step: str, what: dict[str, Any]) -> None:
        assert step not in self.steps, f"{self.case.name}: two steps are called {step}"
        self.steps[step] = what

    def _exchange(self, key: ApiKey, version: int, values: Mapping[str, Any]) -> Any:
        correlation_id = next(self._correlation_ids)
        link = self._connected()
        link.send(self._frame(key, version, correlation_id, values))
        frame = link.receive()
        (answered_id,) = struct.unpack_from(">i", frame)
        assert answered_id == correlation_id, f"{key.name} v{version}: answer {answered_id} to request {correlation_id}"
        position = messages.skip_tags(frame, 4) if response_header_version(key, version) == 1 else 4
        return messages.decode(load_response_schema(key, version), frame, position)

    @staticmethod
    def _frame(key: ApiKey, version: int, correlation_id: int, values: Mapping[str, Any]) -> bytes:
        api = APIS[key]
        classes = [load_request_schema(key, one) for one in range(api.min_version, api.max_version + 1)]
        wrong = messages.unknown_names(classes, values)
        assert not wrong, f"no version of {api.name} has {wrong}"
        tags = b"\0" if request_header_version(key, version) == 2 else b""
        header = struct.pack(">hhih", key, version, correlation_id, 6) + b"script" + tags
        return header + messages.encode(load_request_schema(key, version), values)

    def _connected(self) -> Link:
        if self._link is None:
            self._link = self._target.connect()
        return self._link

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def play(case: Case, version: int, target: Target) -> dict[str, Any]:
    """One entry of a transcript."""
    run = Run(case, version, target)
    case.play(run)
    return run.finish()


def _own(value: Any, prefix: str) -> Any:
    if isinstance(value, dict):
        return {name: _own(one, prefix) for name, one in value.items()}
    if isinstance(value, list):
        return [_own(one, prefix) for one in value if not _is_foreign(one, prefix)]
    return value


def _is_foreign(item: Any, prefix: str) -> bool:
    if not isinstance(item, dict):
        return False
    fields = ("name", "topic", "resource_name", "group_id", "transactional_id")
    name = next((item[field] for field in fields if item.get(field)), prefix)
    return not str(name).startswith(prefix)
