"""The pods of the Helm chart run: what their containers start, are asked and do before they stop, as processes here."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from chart import containers, manifests_of, render
from deploy_files import ENTRYPOINT, find
from waiting import DEADLINE_S, wait_for

from penstock.client.admin import Admin
from penstock.local.ports import find_free
from penstock.protocol.rest.nodes import Node

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

VALUES: Final = {"cluster": {"id": "4L6g3nShT-eMCtK--X86sw", "secret": "s"}}
SEPARATE: Final = {
    **VALUES,
    "brokers": {"count": 2, "storage": {"volumes": 2}},
    "controllers": {"count": 1, "separate": True},
    "outside": {"enabled": True, "host": "127.0.0.1", "firstNodePort": 31090},
    "properties": {
        "default.replication.factor": "2",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "2",
    },
}
PORTS: Final = (9092, 9093, 9094, 9644)
ROLLED: Final = 1
TOPIC: Final = "orders"


@dataclass(slots=True)
class Pod:
    """A pod whose addresses and folders are of this machine. `process` is None while its container does not run."""

    name: str
    container: dict[str, Any]
    environment: dict[str, str]
    http: str
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            command = ["/bin/sh", str(ENTRYPOINT), *self.container["args"]]
            self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def answers(self, probe: str) -> bool:
        """Whether the kubelet would call the probe a success."""
        path = self.container[probe]["httpGet"]["path"]
        try:
            with urllib.request.urlopen(f"{self.http}{path}", timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def hook(self) -> subprocess.Popen[str]:
        """The command that Kubernetes runs in the container before it stops it."""
        command = self.container["lifecycle"]["preStop"]["exec"]["command"]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def terminate(self) -> None:
        """As Kubernetes does after the hook; the container ends by itself."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(DEADLINE_S) == 0, self.log.read_text()
        self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(DEADLINE_S)


def ended(hook: subprocess.Popen[str]) -> str:
    """What the hook said. Asserts that it ends, with status 0."""
    said, _ = hook.communicate(timeout=DEADLINE_S)
    assert hook.returncode == 0, said
    return said


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[list[Pod]]:
    """Three pods that are ready."""
    with running(tmp_path, VALUES) as found:
        yield found


@contextmanager
def running(folder: Path, values: dict[str, Any]) -> Iterator[list[Pod]]:
    """The pods of these values, once all are ready."""
    rendered = manifests_of(render(values)[0])
    found = list(containers(rendered))
    generator = random.Random()
    here = {(name, port): f"127.0.0.1:{find_free(generator)}" for name, _, _ in found for port in PORTS}
    domain = f"{find(rendered, 'Service', '-nodes')['metadata']['name']}.streams.svc.cluster.local"
    properties = find(rendered, "ConfigMap")["data"]["server.properties"]

    def localised(name: str, value: Any) -> Any:
        """Names of pods are addresses of this machine, and so are the addresses of the pod itself."""
        text = msgspec.json.encode(value).decode()
        for (pod, port), address in here.items():
            text = text.replace(f"{pod}.{domain}:{port}", address)
            # What a NodePort would lead to.
            if port == 9094:
                text = text.replace(f"127.0.0.1:{31090 + int(pod.rpartition('-')[2])}", address)
        for port in PORTS:
            for own in (f"//:{port}", f"//0.0.0.0:{port}", f"//127.0.0.1:{port}"):
                text = text.replace(own, f"//{here[name, port]}")
        text = text.replace("/etc/penstock", str(folder / name))
        text = text.replace("/var/lib/penstock", str(folder / name / "volume"))
        return msgspec.json.decode(text)

    made = []
    for name, container, environment in found:
        container = localised(name, container)
        for mount in container["volumeMounts"]:
            if mount["name"].startswith("data"):
                Path(mount["mountPath"]).mkdir(parents=True)
        (folder / name / "server.properties").write_text(localised(name, properties))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        made.append(
            Pod(
                name=name,
                container=container,
                environment={**localised(name, environment), "PATH": path},
                http=f"http://{here[name, 9644]}",
                log=folder / f"{name}.log",
            )
        )
    with ExitStack() as started:
        for pod in made:
            pod.start()
            started.callback(pod.kill)
        for pod in made:
            wait_for(partial(pod.answers, "readinessProbe"), f"{pod.name} is ready")
        yield made


def nodes(admin: Admin) -> dict[int, Node]:
    return {one.node_id: one for one in admin.list_nodes().nodes}


def test_a_pod_that_is_rolled_leads_nothing_before_it_stops_and_leads_again_after(pods: list[Pod]) -> None:
    with Admin(",".join(pod.http for pod in pods if pod is not pods[ROLLED])) as admin:
        cli(pods[0], "topic", "create", TOPIC, "--partitions", "3")
        wait_for(lambda: nodes(admin)[ROLLED].leader_count == 1, "each broker leads a partition")
        cli(pods[0], "produce", TOPIC, text="before\n")

        assert "leads nothing. Its node may be stopped." in ended(pods[ROLLED].hook())
        wait_for(lambda: nodes(admin)[ROLLED].is_drained, "the other nodes know it")
        assert nodes(admin)[ROLLED].leader_count == 0
        # It serves until SIGTERM, so its service sends it clients until then.
        assert pods[ROLLED].answers("readinessProbe")
        pods[ROLLED].terminate()
        assert not pods[ROLLED].answers("readinessProbe")
        cli(pods[0], "produce", TOPIC, text="meanwhile\n")

        pods[ROLLED].start()
        wait_for(lambda: pods[ROLLED].answers("readinessProbe"), "it is ready again")
        assert pods[ROLLED].answers("livenessProbe")
        wait_for(lambda: not nodes(admin)[ROLLED].is_drained, "the drain has ended")
        wait_for(lambda: nodes(admin)[ROLLED].leader_count == 1, "its leadership is back")
    read = cli(pods[0], "consume", TOPIC, "--quiet").split()
    assert sorted(read) == ["before", "meanwhile"]


def test_a_drain_by_an_operator_is_there_after_the_pod_was_rolled(pods: list[Pod]) -> None:
    with Admin(pods[0].http) as admin:
        admin.drain_broker(ROLLED)
        ended(pods[ROLLED].hook())
        pods[ROLLED].terminate()
        pods[ROLLED].start()
        wait_for(lambda: pods[ROLLED].answers("readinessProbe"), "it is ready again")
        state = admin.get_maintenance(ROLLED)
        assert (state.is_drained, state.is_until_restart) == (True, False)


def test_pods_that_are_all_stopped_do_not_wait_for_each_other(pods: list[Pod]) -> None:
    cli(pods[0], "topic", "create", TOPIC, "--partitions", "3")
    hooks = [pod.hook() for pod in pods]
    for hook in hooks:
        # Of the deadline nothing is needed: the last of them sees that no other is left.
        hook.communicate(timeout=DEADLINE_S)
    assert all(hook.returncode == 0 for hook in hooks)
    for pod in pods:
        pod.terminate()


def test_brokers_beside_controllers_are_reached_from_outside_and_use_all_their_volumes(tmp_path: Path) -> None:
    with running(tmp_path, SEPARATE) as found:
        controller, *brokers = sorted(found, key=lambda pod: "controller" not in pod.name)
        assert [pod.name for pod in brokers] == ["demo-penstock-broker-0", "demo-penstock-broker-1"]
        addresses = [
            word.removeprefix("OUTSIDE://") for word in brokers[0].environment["ADVERTISED_BY_ORDINAL"].split()
        ]
        for address in addresses:
            cli(brokers[0], "topic", "create", f"of-{addresses.index(address)}", "--partitions", "4", bootstrap=address)
        cli(brokers[0], "produce", "of-1", text="from outside\n", bootstrap=addresses[0])
        assert cli(brokers[0], "consume", "of-1", "--quiet", bootstrap=addresses[1]) == "from outside\n"
        for pod in brokers:
            for directory in pod.environment["PENSTOCK_LOG_DIRS"].split(","):
                assert list(Path(directory).glob("of-*")), f"{directory} holds no partition"
        assert "lifecycle" not in controller.container
        assert "leads nothing" in ended(brokers[0].hook())
        brokers[0].terminate()
        assert cli(brokers[1], "consume", "of-1", "--quiet", bootstrap=addresses[1]) == "from outside\n"


def cli(pod: Pod, *words: str, text: str = "", bootstrap: str = "") -> str:
    """What `penstock` prints in the container of a pod; without `bootstrap` it asks the pod's own broker."""
    bootstrap = bootstrap or pod.environment["PENSTOCK_ADVERTISED_LISTENERS"].removeprefix("INSIDE://")
    done = subprocess.run(
        ["penstock", *words, "--bootstrap", bootstrap],
        env=pod.environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
