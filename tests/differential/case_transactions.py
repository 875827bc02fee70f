"""Transactions: what a coordinator says to producers, known and unknown, old and new, and to administrators."""

from __future__ import annotations

from typing import Any, NamedTuple

from differential.case_groups import group
from differential.record_batches import batch
from differential.script import Run, case

from penstock.protocol.apis import ApiKey

NOT_YET = (14, 15, 16)
"""The coordinator is being loaded, made, or elsewhere."""
CONCURRENT_TRANSACTIONS = 51
MINUTE_MS = 60_000
LAST_OF_CLIENTS = 3
"""The last version of AddPartitionsToTxn in which producers ask; brokers ask in later ones."""


class Producer(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int

    @property
    def fields(self) -> dict[str, Any]:
        return self._asdict()


def transactional_id(run: Run, word: str = "tx") -> str:
    """One of this run, whose coordinator is there, and that has never begun."""
    name = run.name(word)

    def is_found() -> bool:
        found = run.quiet(ApiKey.FIND_COORDINATOR, key_type=1, coordinator_keys=[name])
        return bool(found["coordinators"][0]["error_code"] == 0)

    run.wait_for(is_found)
    run.wait_for(lambda: described(run, name)["error_code"] not in NOT_YET)
    return name


def described(run: Run, name: str) -> Any:
    return run.quiet(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[name])["transaction_states"][0]


def begin(run: Run, name: str) -> Producer:
    """As the next producer with the transactional id."""
    # The first id that a broker gives is 0, which errors have in the place of one.
    run.producer_id()
    answers: list[Any] = []

    def is_begun() -> bool:
        answers.append(
            run.quiet(
                ApiKey.INIT_PRODUCER_ID,
                transactional_id=name,
                transaction_timeout=MINUTE_MS,
                producer_id=-1,
                producer_epoch=-1,
            )
        )
        return bool(answers[-1]["error_code"] == 0)

    run.wait_for(is_begun)
    # Named in this order, whatever order a broker lists them in.
    run.names.number("producer_id", answers[-1]["producer_id"])
    return Producer(name, answers[-1]["producer_id"], answers[-1]["producer_epoch"])


def add(run: Run, producer: Producer, topic: str, *partitions: int) -> None:
    """As a producer of version 1 does."""

    def is_added() -> bool:
        answer = run.quiet(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            LAST_OF_CLIENTS,
            **said_by(producer, {topic: list(partitions)}),
            transactions=[],
        )
        return all(
            one["partition_error_code"] == 0
            for result in answer["results_by_topic_v3_and_below"]
            for one in result["results_by_partition"]
        )

    run.wait_for(is_added)


def said_by(producer: Producer, topics: dict[str, list[int]]) -> dict[str, Any]:
    """A transaction of AddPartitionsToTxn in the fields of older versions."""
    return {
        **{f"v3_and_below_{name}": value for name, value in producer.fields.items()},
        "v3_and_below_topics": [{"name": name, "partitions": partitions} for name, partitions in topics.items()],
    }


def wait_over(run: Run, name: str) -> None:
    """Until the markers of its last transaction are written."""
    run.wait_for(lambda: str(described(run, name)["transaction_state"]).startswith("Complete"))


@case(ApiKey.INIT_PRODUCER_ID)
def init_transactional_producer(run: Run) -> None:
    name = transactional_id(run)
    topic = run.create()

    def ask(step: str, **values: Any) -> Any:
        known = {"transactional_id": name, "transaction_timeout": MINUTE_MS, "producer_id": -1, "producer_epoch": -1}
        return run.ask(step, **{**known, **values})

    for timeout in (0, -1, 900_001, 2**31 - 1):
        ask(f"timeout {timeout}", transaction_timeout=timeout)
    begin(run, name)
    second = ask("another producer")
    who = {"producer_id": second["producer_id"], "producer_epoch": second["producer_epoch"]}
    ask("the same producer", **who)
    ask("the same producer again", **who)
    ask("a later epoch", **{**who, "producer_epoch": 99})
    ask("another producer id", **{**who, "producer_id": 10**9})
    begin(run, name)
    ask("an epoch of before", **who)
    add(run, begin(run, name), topic, 0)
    ask("a transaction is open")
    wait_over(run, name)
    ask("its transaction was aborted")
    ask("an unknown one says who it was", transactional_id=transactional_id(run, "other"), **who)


@case(ApiKey.ADD_PARTITIONS_TO_TXN)
def add_partitions_to_txn(run: Run) -> None:
    name = transactional_id(run)
    topic = run.create("t", 3)
    producer = begin(run, name)

    def ask(step: str, who: Producer, *, verify_only: bool = False, **topics: list[int]) -> None:
        named = {run.name("unknown") if key == "unknown" else topic: value for key, value in topics.items()}
        transaction = {
            **who.fields,
            "verify_only": verify_only,
            "topics": [{"name": key, "partitions": value} for key, value in named.items()],
        }
        run.ask(step, **said_by(who, named), transactions=[transaction])

    ask("nothing", producer)
    ask("unknown id", producer._replace(transactional_id=transactional_id(run, "other")), known=[0])
    ask("no id", producer._replace(transactional_id=""), known=[0])
    ask("another producer", producer._replace(producer_id=10**9), known=[0])
    ask("an older epoch", producer._replace(producer_epoch=-1), known=[0])
    ask("a later epoch", producer._replace(producer_epoch=9), known=[0])
    ask("unknown", producer, known=[0, 7, -1], unknown=[0])
    ask("added", producer, known=[0, 1])
    ask("some of them again", producer, known=[1, 2])
    ask("all of them again", producer, known=[0, 1, 2])
    if run.version <= LAST_OF_CLIENTS:
        run.note("partitions", sorted(described(run, name)["topics"][0]["partitions"]))


@case(ApiKey.ADD_OFFSETS_TO_TXN)
def add_offsets_to_txn(run: Run) -> None:
    name = transactional_id(run)
    producer = begin(run, name)

    def ask(step: str, who: Producer, group_id: str) -> None:
        run.ask(step, **who.fields, group_id=group_id)

    ask("unknown id", producer._replace(transactional_id=transactional_id(run, "other")), "g")
    ask("no id", producer._replace(transactional_id=""), "g")
    ask("another producer", producer._replace(producer_id=10**9), "g")
    ask("another epoch", producer._replace(producer_epoch=9), "g")
    ask("added", producer, "g")
    ask("again", producer, "g")
    ask("no group", producer, "")
    run.note("topics", [one["topic"] for one in described(run, name)["topics"]])


@case(ApiKey.END_TXN)
def end_txn(run: Run) -> None:
    name = transactional_id(run)
    topic = run.create("t", 2)
    producer = begin(run, name)

    def ask(step: str, who: Producer, *, committed: bool = True) -> Producer:
        answer = run.ask(step, **who.fields, committed=committed)
        if answer is not None and answer["error_code"] == 0 and "producer_epoch" in answer:
            return Producer(name, answer["producer_id"], answer["producer_epoch"])
        return producer

    def ended(step: str, *, committed: bool) -> Producer:
        """What the producer goes on as, when all is over."""
        after = ask(step, producer, committed=committed)
        wait_over(run, name)
        return after

    ask("unknown id", producer._replace(transactional_id=transactional_id(run, "other")))
    ask("no id", producer._replace(transactional_id=""))
    ask("nothing to commit", producer)
    after = ask("nothing to abort", producer, committed=False)
    if after != producer:
        wait_over(run, name)
    ask("nothing to abort again", producer, committed=False)
    producer = begin(run, name) if after == producer else after
    for committed in (True, False):
        word = "commit" if committed else "abort"
        add(run, producer, topic, 0, 1)
        ask(f"{word} of another producer", producer._replace(producer_id=10**9), committed=committed)
        ask(f"{word} of an older epoch", producer._replace(producer_epoch=-1), committed=committed)
        ask(f"{word} of a later epoch", producer._replace(producer_epoch=99), committed=committed)
        after = ended(word, committed=committed)
        ask(f"{word} again", producer, committed=committed)
        ask(f"another end than {word}", producer, committed=not committed)
        if after != producer:
            ask(f"commit of nothing behind {word}", after)
        producer = after
    run.note("state", described(run, name)["transaction_state"])


@case(ApiKey.DESCRIBE_TRANSACTIONS)
def describe_transactions(run: Run) -> None:
    name = transactional_id(run)
    topic = run.create()

    def ask(step: str, *names: str) -> None:
        run.ask(step, transactional_ids=list(names))

    ask("nothing")
    ask("unknown", name)
    ask("no name", "")
    producer = begin(run, name)
    ask("begun", name)
    add(run, producer, topic, 0)
    ask("open", name, transactional_id(run, "other"))
    run.quiet(ApiKey.END_TXN, 4, **producer.fields, committed=True)
    wait_over(run, name)
    ask("complete", name, name)


@case(ApiKey.LIST_TRANSACTIONS)
def list_transactions(run: Run) -> None:
    topic = run.create()
    names = [transactional_id(run, word) for word in ("a", "b", "c")]
    producers = [begin(run, name) for name in names]
    add(run, producers[1], topic, 0)
    add(run, producers[2], topic, 0)
    run.quiet(ApiKey.END_TXN, 4, **producers[2].fields, committed=False)
    wait_over(run, names[2])

    def ask(step: str, **values: Any) -> None:
        neutral = {
            "state_filters": [],
            "producer_id_filters": [],
            "duration_filter": -1,
            "transactional_id_pattern": None,
        }
        run.ask(step, only_own=True, **{**neutral, **values})

    ask("all")
    for state in (
        "Ongoing",
        "Empty",
        "CompleteAbort",
        "PrepareCommit",
        "Dead",
        "PrepareEpochFence",
        "ongoing",
        "Nothing",
    ):
        ask(f"in state {state}", state_filters=[state])
    ask("in two states", state_filters=["Ongoing", "Empty", "Nothing"])
    ask("of a producer", producer_id_filters=[producers[1].producer_id])
    ask("of nobody", producer_id_filters=[10**9, -1])
    if run.version >= 1:
        ask("of a minute", duration_filter=MINUTE_MS)
        ask("open for a minute", duration_filter=MINUTE_MS, state_filters=["Ongoing"])
    if run.version >= 2:
        for place, pattern in enumerate(("", names[0].replace(".", "[.]"), "list", ".*[ab]", "(", "*")):
            ask(f"pattern {place}", transactional_id_pattern=pattern)


@case(ApiKey.TXN_OFFSET_COMMIT)
def txn_offset_commit(run: Run) -> None:
    name, group_id = transactional_id(run), group(run)
    topic = run.create("t", 2)
    producer = begin(run, name)
    place: dict[str, Any] = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "m"}

    def ask(step: str, who: Producer, of: str = group_id, **values: Any) -> None:
        places = values.pop("partitions", [place])
        run.ask(step, **who.fields, group_id=of, topics=[{"name": topic, "partitions": places}], **values)

    def fetched(step: str) -> None:
        topics = [{"name": topic, "partition_indexes": [0, 1]}]
        groups = [{"group_id": group_id, "topics": topics}]
        answer = run.quiet(ApiKey.OFFSET_FETCH, 8, groups=groups, require_stable=True)
        run.note(step, answer["groups"][0]["topics"])

    run.quiet(ApiKey.ADD_OFFSETS_TO_TXN, **producer.fields, group_id=group_id)
    ask("committed", producer)
    fetched("while it is open")
    ask("unknown partitions", producer, partitions=[{**place, "partition_index": one} for one in (1, 2, -1)])
    ask("large metadata", producer, partitions=[{**place, "committed_metadata": "x" * 4_097}])
    ask("an older epoch", producer._replace(producer_epoch=-1))
    ask("no group", producer, "")
    if run.version >= 3:
        ask("unknown member", producer, generation_id=1, member_id="nobody")
        ask("unknown static member", producer, generation_id=1, member_id="nobody", group_instance_id="static")
    run.quiet(ApiKey.END_TXN, 4, **producer.fields, committed=True)
    wait_over(run, name)
    fetched("when it is over")


@case(ApiKey.WRITE_TXN_MARKERS)
def write_txn_markers(run: Run) -> None:
    """Aborts, as an administrator asks for them: what a coordinator asks for is for nodes of the cluster only."""
    name, topic = transactional_id(run), run.create("t", 2)
    begin(run, name)
    producer = begin(run, name)
    add(run, producer, topic, 0)

    def marker(who: Producer, *partitions: int, topic: str = topic, coordinator_epoch: int = 0) -> dict[str, Any]:
        return {
            "producer_id": who.producer_id,
            "producer_epoch": who.producer_epoch,
            "transaction_result": False,
            "topics": [{"name": topic, "partition_indexes": list(partitions)}],
            "coordinator_epoch": coordinator_epoch,
            "transaction_version": 0,
        }

    def produce(step: str, sequence: int) -> None:
        records = batch(
            run.base_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = run.produce_topic(topic, {"index": 0, "records": records})
        values: dict[str, Any] = {"transactional_id": name, "acks": -1, "timeout": 10_000, "topic_data": [data]}
        run.ask(step, ApiKey.PRODUCE, 11, **values)

    run.ask("nothing", markers=[])
    produce("written", 0)
    run.ask("an older epoch", markers=[marker(producer._replace(producer_epoch=0), 0)])
    run.ask("unknown partitions", markers=[marker(producer, 7, topic=topic), marker(producer, 0, topic=run.name("u"))])
    run.ask("aborted", markers=[marker(producer, 0)])
    run.ask("again", markers=[marker(producer, 0)])
    run.ask("of a later coordinator", markers=[marker(producer, 0, coordinator_epoch=9)])
    run.ask("of an older coordinator", markers=[marker(producer, 0, coordinator_epoch=3)])
    run.ask("of a producer that was never there", markers=[marker(producer._replace(producer_id=10**9), 1)])
    run.ask("producers", ApiKey.DESCRIBE_PRODUCERS, topics=[{"name": topic, "partition_indexes": [0, 1]}])


@case(ApiKey.PRODUCE, versions=(11, 12))
def produce_in_transactions(run: Run) -> None:
    name, topic = transactional_id(run), run.create("t", 2)
    producer = begin(run, name)

    def produce(step: str, who: Producer, sequence: int, partition: int = 0, of: str | None = name) -> None:
        records = batch(
            run.base_ms,
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = run.produce_topic(topic, {"index": partition, "records": records})
        run.ask(step, transactional_id=of, acks=-1, timeout=10_000, topic_data=[data])

    add(run, producer, topic, 0)
    produce("written", producer, 0)
    produce("again", producer, 0)
    produce("next", producer, 1)
    produce("a gap", producer, 3)
    produce("an older epoch", producer._replace(producer_epoch=-1), 2)
    produce("a later epoch", producer._replace(producer_epoch=9), 0)
    produce("a partition that was not added", producer, 0, 1)
    produce("an unknown id", producer, 0, 1, transactional_id(run, "other"))
    run.quiet(ApiKey.END_TXN, 4, **producer.fields, committed=True)
    wait_over(run, name)
    produce("behind the end", producer, 2)
