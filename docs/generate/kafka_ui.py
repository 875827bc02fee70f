"""Check and draw what Kowl, a web interface for Kafka that others wrote, shows of three nodes.

`python docs/generate/kafka_ui.py PROGRAM PAGES` starts the nodes and Kowl's PROGRAM with the folder of its PAGES. It
compares the sizes that Kowl tells with the files on the disks, and its lags with what is committed, then writes
docs/pictures/kowl-*.png by the system's Chromium. docs/dashboards.md says how to build Kowl.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import sync_playwright

from penstock.client import clock
from penstock.local.cluster import LocalCluster
from penstock.local.ports import find_free

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
HOST = "127.0.0.1"
DEADLINE_S = 120.0
TOPICS = {"clicks": 12, "orders": 6, "payments": 3}
RECORDS = {"clicks": 120_000, "orders": 40_000, "payments": 9_000}
GROUP, TOPIC = "shop", "orders"
LAGS = {0: 1504, 1: 0, 2: 213, 3: 0, 4: 661, 5: 26}
VIEWS = {"topics": 480, "groups/shop": 740}
"""Pages, and how high their pictures are, in pixels."""


def main() -> None:
    """Raises AssertionError where Kowl tells something else than what is there."""
    program, pages = (Path(argument).resolve() for argument in sys.argv[1:])
    with TemporaryDirectory() as folder, LocalCluster(Path(folder) / "cluster", node_count=3) as cluster:
        ends = _fill(cluster.bootstrap)
        members = _joined(cluster.bootstrap)
        try:
            for member in members:
                own = [
                    TopicPartition(TOPIC, one.partition, ends[one.partition] - LAGS[one.partition])
                    for one in member.assignment()
                ]
                member.commit(offsets=own, asynchronous=False)
            with _kowl(program, pages, cluster.bootstrap, Path(folder)) as url:
                _compare(url, cluster)
                _draw(url)
        finally:
            for member in members:
                member.close()


def _fill(bootstrap: str) -> Mapping[int, int]:
    """Create and fill the topics; return the end of each partition of TOPIC."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(name, count, 3) for name, count in TOPICS.items()])
    for future in created.values():
        future.result(DEADLINE_S)
    generator = random.Random(7)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 500_000})
    for name, count in RECORDS.items():
        for number in range(count):
            producer.produce(name, generator.randbytes(generator.randint(20, 120)), key=str(number))
    assert producer.flush(DEADLINE_S) == 0
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        indexes = range(TOPICS[TOPIC])
        return {one: reader.get_watermark_offsets(TopicPartition(TOPIC, one), timeout=DEADLINE_S)[1] for one in indexes}
    finally:
        reader.close()


def _joined(bootstrap: str) -> list[Consumer]:
    """Two members of GROUP that share its topic."""
    members = []
    for number in (1, 2):
        settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "client.id": f"till-{number}"}
        members.append(Consumer({**settings, "enable.auto.commit": False}))
        members[-1].subscribe([TOPIC])

    def shared() -> bool:
        for member in members:
            member.poll(0.1)
        return all(len(member.assignment()) == TOPICS[TOPIC] // len(members) for member in members)

    _wait_for(shared, "both members have partitions")
    return members


@contextmanager
def _kowl(program: Path, pages: Path, bootstrap: str, folder: Path) -> Iterator[str]:
    port = find_free(random.Random())
    configuration = {
        "kafka": {"brokers": bootstrap.split(",")},
        "frontendPath": str(pages),
        "server": {"listenAddress": HOST, "listenPort": port},
    }
    file = folder / "kowl.yaml"
    # JSON is YAML.
    file.write_text(json.dumps(configuration))
    with (folder / "kowl.log").open("wb") as log:
        process = subprocess.Popen([program, f"-config.filepath={file}"], stdout=log, stderr=log, cwd=folder)
        try:
            url = f"http://{HOST}:{port}"
            _wait_for(lambda: _answers(url), "Kowl answers")
            yield url
        finally:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        return bool(_get(f"{url}/api/topics")["topics"])
    except URLError:
        return False


def _compare(url: str, cluster: LocalCluster) -> None:
    told = {one["topicName"]: one["logDirSummary"]["totalSizeBytes"] for one in _get(f"{url}/api/topics")["topics"]}
    for name in TOPICS:
        files = cluster.folder.glob(f"node-*/{name}-*/*.log")
        assert told[name] == sum(file.stat().st_size for file in files), name
    groups = {one["groupId"]: one for one in _get(f"{url}/api/consumer-groups")["consumerGroups"]}
    (topic,) = groups[GROUP]["topicOffsets"]
    assert {one["partitionId"]: one["lag"] for one in topic["partitionOffsets"]} == LAGS
    assert (groups[GROUP]["state"], len(groups[GROUP]["members"])) == ("Stable", 2)


def _draw(url: str) -> None:
    program = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for page, height in VIEWS.items():
            view = browser.new_page(viewport={"width": 1380, "height": height})
            view.goto(f"{url}/{page}")
            view.get_by_text(TOPIC, exact=True).first.wait_for(timeout=DEADLINE_S * 1000)
            # Rows fade in.
            view.wait_for_timeout(2_000)
            view.screenshot(path=PICTURES / f"kowl-{page.partition('/')[0]}.png")
        browser.close()


def _get(url: str) -> Any:
    with urlopen(url, timeout=DEADLINE_S) as answer:
        return json.load(answer)


def _wait_for(is_so: Callable[[], bool], what: str) -> None:
    if not clock.wait_until(is_so, timeout_s=DEADLINE_S, interval_s=0.1):
        raise AssertionError(f"not within {DEADLINE_S:g} s: {what}")


if __name__ == "__main__":
    main()
