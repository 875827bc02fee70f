"""docs/use-cases.md on three nodes: each line that its reader types, and each program of it under load and kills.

`PENSTOCK_TEST_KILLS` is how often the notifier is killed (3; more in a soak).
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
import use_cases_page
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from exactly_once import PROPERTIES, ProcessApplication
from mirrored_source import read_topic
from replicated_cluster import DEADLINE_S, draw_generator, say
from use_cases_page import STREAM_PROCESSING
from waiting import wait_for

from penstock.chaos.workloads.committed_reader import CommittedReader
from penstock.client.client_log import SILENT_LOGGER
from penstock.client.examples import activity_tracking, commit_log, metrics_and_logs, notifier
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "3"))
PARTITIONS: Final = 3
SITES: Final = ("shop", "blog", "forum")
EVENTS: Final = 400
USERS: Final = 7
MESSAGES_BETWEEN_KILLS: Final = 150
CHANGES: Final = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the reader is."""
    return tmp_path_factory.mktemp("reader")


@pytest.fixture(scope="module")
def bootstrap(folder: Path) -> Iterator[str]:
    """Of a cluster where `penstock up` puts it."""
    with LocalCluster(folder / "penstock-cluster", node_count=3, properties=PROPERTIES) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def topics(bootstrap: str) -> Iterator[AdminClient]:
    """Makes topics; those of a test are deleted behind it, so each begins with none."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    yield admin
    names = [name for name in admin.list_topics(timeout=DEADLINE_S).topics if not name.startswith("__")]
    for future in admin.delete_topics(names).values() if names else ():
        future.result(DEADLINE_S)
    wait_for(lambda: not set(names) & admin.list_topics(timeout=DEADLINE_S).topics.keys(), "the topics are deleted")


def create(admin: AdminClient, *names: str, policy: str = "delete") -> None:
    config = {"min.insync.replicas": "2", "cleanup.policy": policy}
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 3, config=config) for name in names]).values():
        future.result(DEADLINE_S)


@pytest.mark.parametrize("heading", [one for one in use_cases_page.sessions() if one != STREAM_PROCESSING])
def test_reader_of_the_page_sees_what_it_says(heading: str, bootstrap: str, topics: AdminClient, folder: Path) -> None:
    variables = use_cases_page.environment(bootstrap, folder / "bin")
    use_cases_page.follow(use_cases_page.sessions()[heading], folder, variables)
    if heading == "Metrics and logs":
        check_sinks(bootstrap, folder)


def check_sinks(bootstrap: str, folder: Path) -> None:
    """Each record is in one of the two sinks."""
    lines = [json.loads(line) for line in (folder / "collected.jsonl").read_text().splitlines()]
    in_file = [(line["topic"], line["partition"], line["offset"]) for line in lines]
    with closing(sqlite3.connect(folder / "collected.db")) as database:
        in_table = database.execute("SELECT topic, partition, offset FROM records").fetchall()
    stored = [
        (topic, number, record.offset)
        for topic in (metrics_and_logs.LOGS, metrics_and_logs.METRICS)
        for number, records in enumerate(read_topic(bootstrap, topic, PARTITIONS))
        for record in records
    ]
    assert Counter(in_file + in_table) == Counter(stored)
    assert in_file
    assert in_table


def test_events_of_several_sites_are_counted_and_in_order_by_user(
    bootstrap: str, topics: AdminClient, tmp_path: Path
) -> None:
    create(topics, "activity.views", "activity.buys")
    generator = draw_generator(__file__)
    sent: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    processes = []
    for site in SITES:
        lines = tmp_path / site
        with lines.open("w") as file:
            for number in range(EVENTS):
                kind, user, page = (
                    generator.choice(["views", "buys"]),
                    f"user-{generator.randrange(USERS)}",
                    f"/{number}",
                )
                sent[kind, user, site].append(page)
                file.write(json.dumps({"kind": kind, "user": user, "page": page}) + "\n")
        with lines.open() as file:
            processes.append(subprocess.Popen(program(activity_tracking, bootstrap, "track", site), stdin=file))
    assert [process.wait(DEADLINE_S) for process in processes] == [0] * len(SITES)
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for kind in ("views", "buys"):
        for event in activity_tracking.events(bootstrap, kind):
            found[kind, event.user, event.site].append(event.page)
    assert found == sent
    assert sum(map(len, found.values())) == EVENTS * len(SITES)


class NotifierProcess(ProcessApplication):
    def __init__(self, folder: Path, bootstrap: str) -> None:
        super().__init__(folder)
        self._bootstrap = bootstrap

    def command(self) -> Sequence[str]:
        return program(notifier, self._bootstrap)


def test_notifier_that_is_killed_sends_each_message_in_one_notification(
    bootstrap: str, topics: AdminClient, tmp_path: Path
) -> None:
    """Those of a user in order, several in one where the user wants that, none of a user who wants none."""
    create(topics, notifier.MESSAGES, notifier.NOTIFICATIONS)
    create(topics, notifier.PREFERENCES, notifier.PENDING, policy="compact")
    generator = draw_generator(__file__)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True}, logger=SILENT_LOGGER)
    preferences = {"slow": {"digest_s": 1.0}, "slower": {"digest_s": 2.0}, "muted": {"is_muted": True}}
    for user, preference in preferences.items():
        producer.produce(notifier.PREFERENCES, json.dumps(preference), user)
    users = [*preferences, "at-once", "at-once-too"]
    sent: dict[str, list[str]] = {user: [] for user in users}
    application = NotifierProcess(tmp_path, bootstrap)
    with (
        CommittedReader(bootstrap, notifier.NOTIFICATIONS, partitions=PARTITIONS) as sending,
        CommittedReader(bootstrap, notifier.MESSAGES, partitions=PARTITIONS) as sources,
    ):

        def send(count: int) -> None:
            for _ in range(count):
                user = generator.choice(users)
                sent[user].append(f"{user} {len(sent[user])}")
                producer.produce(notifier.MESSAGES, sent[user][-1], user)
            assert producer.flush(DEADLINE_S) == 0

        def texts() -> int:
            return sum(len(json.loads(record.value)) for part in sending.read for record in list(part))

        assert producer.flush(DEADLINE_S) == 0
        application.start()
        try:
            for _ in range(KILLS):
                goal = texts() + generator.randrange(1, MESSAGES_BETWEEN_KILLS // 3)
                send(MESSAGES_BETWEEN_KILLS)
                wait_for(lambda goal=goal: texts() >= goal, application.log_tail)  # type: ignore[misc]
                application.kill()
                application.start()
            send(MESSAGES_BETWEEN_KILLS)
            expected = {user: messages for user, messages in sent.items() if user != "muted"}
            wait_for(lambda: texts() >= sum(map(len, expected.values())), application.log_tail)
        finally:
            application.stop()
        assert sources.count == sum(map(len, sent.values()))
    found: dict[str, list[str]] = defaultdict(list)
    notifications: Counter[str] = Counter()
    for record in (one.record for part in read_topic(bootstrap, notifier.NOTIFICATIONS, PARTITIONS) for one in part):
        user = (record.key or b"").decode()
        notifications[user] += 1
        found[user] += json.loads(record.value or b"")
    assert found == expected
    for user in ("slow", "slower"):
        assert 0 < notifications[user] < len(expected[user]) / 2, "messages are collected"
    say(f"{KILLS} kills, {sum(map(len, expected.values()))} messages in {notifications.total()} notifications")


def test_view_of_two_databases_is_made_again_from_the_log(bootstrap: str, topics: AdminClient, tmp_path: Path) -> None:
    """After a capture that was killed before it noted what it had sent, too."""
    create(topics, commit_log.TOPIC, policy="compact")
    generator = draw_generator(__file__)
    shop, billing, view = (tmp_path / name for name in ("shop.db", "billing.db", "view.db"))
    for path in (shop, billing):
        commit_log.install(path)
    wiped = 0
    for number in range(CHANGES):
        customer = generator.randrange(1, 20)
        if generator.random() < 0.4:
            change(shop, "INSERT OR REPLACE INTO customers VALUES (?, ?)", customer, f"name-{number}")
            if generator.random() < 0.2:
                change(shop, "DELETE FROM customers WHERE id = ?", generator.randrange(1, 20))
        else:
            change(billing, "INSERT INTO invoices VALUES (?, ?, ?, 0)", number, customer, generator.randrange(1, 500))
            change(billing, "UPDATE invoices SET is_paid = 1 WHERE id = ?", generator.randrange(number + 1))
        if generator.random() < 0.03:
            for path in (shop, billing):
                if generator.random() < 0.3:
                    change(path, "UPDATE captured SET number = max(0, number - 20)")
                commit_log.capture(bootstrap, path)
            if generator.random() < 0.3 and view.exists():
                view.unlink()
                wiped += 1
            commit_log.update_view(bootstrap, view)
    for path in (shop, billing):
        commit_log.capture(bootstrap, path)
    commit_log.update_view(bootstrap, view)
    expected = truth(shop, billing)
    assert len(expected) > 1
    assert balances(view) == expected
    view.unlink()
    assert commit_log.update_view(bootstrap, view) > len(expected)
    assert balances(view) == expected
    # A view that leaves out one change is another.
    change(view, "DELETE FROM rows WHERE key = (SELECT min(key) FROM rows WHERE key LIKE 'shop/%')")
    assert balances(view) != expected
    say(f"{len(expected)} balances, the view wiped {wiped + 1} times")


def program(module: ModuleType, bootstrap: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", module.__name__, "--bootstrap", bootstrap, *arguments]


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute(statement, values)


def balances(view: Path) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(view)) as database:
        return database.execute("SELECT name, owed FROM balances").fetchall()


def truth(shop: Path, billing: Path) -> list[tuple[str, int]]:
    """As the databases themselves have it."""
    with closing(sqlite3.connect(shop)) as database:
        database.execute("ATTACH ? AS billing", (str(billing),))
        return database.execute(
            "SELECT name, coalesce(sum(amount), 0) FROM customers LEFT JOIN billing.invoices AS invoices"
            " ON invoices.customer = customers.id AND NOT is_paid GROUP BY customers.id ORDER BY name"
        ).fetchall()
