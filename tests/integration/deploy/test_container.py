"""The steps of the Dockerfile make an image whose node serves clients, says that it is ready, and stops cleanly."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from deploy_files import DEPLOY, ROOT
from dockerfile import Image, build, instructions, require_chroot
from waiting import DEADLINE_S, wait_for

from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

DOCKERFILE = DEPLOY / "container" / "Dockerfile"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    require_chroot()
    return build(DOCKERFILE, ROOT, tmp_path_factory.mktemp("image"))


@contextmanager
def container(image: Image, settings: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(image.command(image.entrypoint, environment=settings)) as process:
        try:
            yield process
        finally:
            process.kill()


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(json.load(answer)["is_ok"])
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def test_a_node_of_the_image_keeps_its_records_over_a_stop(image: Image) -> None:
    generator = random.Random()
    port, admin = find_free(generator), find_free(generator)
    bootstrap = f"127.0.0.1:{port}"
    settings = {
        "PENSTOCK_LISTENERS": f"PLAINTEXT://{bootstrap}",
        "PENSTOCK_ADMIN_LISTENERS": f"http://127.0.0.1:{admin}",
    }
    for run in (1, 2):
        with container(image, settings) as process:
            wait_for(lambda: is_up(f"http://127.0.0.1:{admin}/ready"), "the node says that it is ready")
            image.run(["penstock", "produce", "orders", "--bootstrap", bootstrap], text=f"record {run}\n")
            printed = image.run(["penstock", "consume", "orders", "--quiet", "--bootstrap", bootstrap])
            assert printed.splitlines() == [f"record {number}" for number in range(1, run + 1)]
            assert is_up(f"http://127.0.0.1:{admin}/health")
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
    data = image.root / "var" / "lib" / "penstock" / "data"
    assert {one.stat().st_uid for one in data.rglob("*")} == {1000}


def test_the_image_has_only_what_a_node_needs(image: Image) -> None:
    packages = {one.name for one in (image.root / "opt" / "penstock" / "lib").glob("python3.*/site-packages/*")}
    assert "penstock" in packages
    assert not {"pytest", "mypy", "ruff"} & packages
    assert not (image.root / "source").exists()
    # Nothing that a node runs may be changed by it.
    assert not [one for one in (image.root / "opt" / "penstock").rglob("*") if one.lstat().st_uid == 1000]


def test_the_health_check_is_python_that_asks_the_listener_of_the_image() -> None:
    told: dict[str, Any] = dict(instructions(DOCKERFILE.read_text()))
    command = json.loads(told["HEALTHCHECK"].partition("CMD ")[2])
    compile(command[-1], "HEALTHCHECK", "exec")
    assert command[:2] == ["python3", "-c"]
    assert "127.0.0.1:9644/health" in command[-1]
    assert "http://0.0.0.0:9644" in DOCKERFILE.read_text()
