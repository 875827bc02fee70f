"""Commit log: the changes of two SQLite databases in one topic, and a view of both that can be made anew from it.

    python commit_log.py install shop.db         tables, and triggers that keep what changes; billing.db likewise
    python commit_log.py sql shop.db STATEMENT   any SQL; prints rows
    python commit_log.py capture shop.db         sends the changes that were not sent yet
    python commit_log.py view view.db            takes in what the topic has that the view has not

The topic `changes` is compacted; the key of a record is database, table and row, its value the row as JSON, and none
for a row that was deleted. The view keeps its rows and how far it has read in one SQLite transaction: remove the file,
and it is made again from the start of the topic. A change that is sent twice comes to the same rows.
`--bootstrap` or the variable KAFKA_BOOTSTRAP_SERVERS says where the cluster is.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TOPIC = "changes"
BATCH_SIZE = 500
TIMEOUT_S = 30
# By database; the first column is the key.
TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "shop": {"customers": ("id", "name")},
    "billing": {"invoices": ("id", "customer", "amount", "is_paid")},
}
VIEW = """
CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, next_offset INTEGER);
CREATE VIEW IF NOT EXISTS customers AS
  SELECT json_extract(value, '$.id') AS id, json_extract(value, '$.name') AS name FROM rows
  WHERE key LIKE 'shop/customers/%';
CREATE VIEW IF NOT EXISTS invoices AS
  SELECT json_extract(value, '$.customer') AS customer, json_extract(value, '$.amount') AS amount FROM rows
  WHERE key LIKE 'billing/invoices/%' AND NOT json_extract(value, '$.is_paid');
CREATE VIEW IF NOT EXISTS balances AS
  SELECT name, coalesce(sum(amount), 0) AS owed FROM customers LEFT JOIN invoices ON customer = id
  GROUP BY id ORDER BY name;
"""


def install(path: Path) -> None:
    """Raises KeyError for a database of another name."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE changes (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT, value TEXT)")
        database.execute("CREATE TABLE captured AS SELECT 0 AS number")
        for table, columns in TABLES[path.stem].items():
            database.execute(f"CREATE TABLE {table} ({columns[0]} INTEGER PRIMARY KEY, {', '.join(columns[1:])})")
            row = ", ".join(f"'{column}', new.{column}" for column in columns)
            for event, which, value in (
                ("INSERT", "new", f"json_object({row})"),
                ("UPDATE", "new", f"json_object({row})"),
                ("DELETE", "old", "NULL"),
            ):
                database.execute(
                    f"CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN INSERT INTO changes (key, value)"
                    f" VALUES ('{path.stem}/{table}/' || {which}.{columns[0]}, {value}); END"
                )


def capture(bootstrap: str, path: Path) -> int:
    """Returns how many changes were sent. Raises KafkaException."""
    with closing(sqlite3.connect(path)) as database:
        (last,) = database.execute("SELECT number FROM captured").fetchone()
        changes = database.execute("SELECT number, key, value FROM changes WHERE number > ?", (last,)).fetchall()
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for _, key, value in changes:
            producer.produce(TOPIC, value, key, on_delivery=delivered)
            producer.poll(0)
        producer.flush()
        if failures:
            raise KafkaException(failures[0])
        if changes:
            with database:
                database.execute("UPDATE captured SET number = ?", (changes[-1][0],))
        return len(changes)


def update_view(bootstrap: str, path: Path) -> int:
    """Returns how many changes were taken in. Raises KafkaException."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(VIEW)
        known = dict(database.execute("SELECT partition, next_offset FROM positions"))
        count = 0
        for messages in _read_to_end(bootstrap, known):
            count += len(messages)
            with database:
                for message in messages:
                    key, value = _text(message.key()), message.value()
                    if value is None:
                        database.execute("DELETE FROM rows WHERE key = ?", (key,))
                    else:
                        database.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", (key, _text(value)))
                    position = (message.partition(), (message.offset() or 0) + 1)
                    database.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", position)
        return count


def _read_to_end(bootstrap: str, known: dict[int, int]) -> Iterator[list[Message]]:
    """From where each partition was left, else from its start, to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # What was compacted away behind a position.
            "auto.offset.reset": "earliest",
        }
    )
    try:
        partitions = consumer.list_topics(TOPIC, TIMEOUT_S).topics[TOPIC].partitions
        consumer.assign([TopicPartition(TOPIC, one, known.get(one, OFFSET_BEGINNING)) for one in partitions])
        at_end: set[int | None] = set()
        while len(at_end) < len(partitions):
            changes = []
            for message in consumer.consume(BATCH_SIZE, 0.1):
                error = message.error()
                if error is None:
                    changes.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
                else:
                    raise KafkaException(error)
            if changes:
                yield changes
    finally:
        consumer.close()


def _text(data: str | bytes | None) -> str:
    return data.decode() if isinstance(data, bytes) else data or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092"))
    parser.add_argument("command", choices=("install", "sql", "capture", "view"))
    parser.add_argument("database", type=Path)
    parser.add_argument("statement", nargs="?", default="")
    options = parser.parse_args()
    if options.command == "install":
        install(options.database)
    elif options.command == "sql":
        with closing(sqlite3.connect(options.database)) as database, database:
            for row in database.execute(options.statement):
                print(*row)
    elif options.command == "capture":
        print(f"{capture(options.bootstrap, options.database)} changes of {options.database}")
    else:
        print(f"{update_view(options.bootstrap, options.database)} changes taken in")


if __name__ == "__main__":
    main()
