"""With a running Apache Kafka: it answers what was recorded of it, and both brokers answer alike to random operations.

Collected with `PENSTOCK_DIFFERENTIAL=live` and on build machines only: see conftest.py.
"""

from __future__ import annotations

import os
import random

import pytest
from differential.cases import CASES
from differential.comparison import differences
from differential.permissions.golden import read_golden as read_golden_permissions
from differential.permissions.layout import Layout
from differential.permissions.matrix import Matrix
from differential.player import Player
from differential.random_operations import Operations
from differential.script import Case, Run, Transcript
from differential.target import Target

from penstock.protocol.apis import ApiKey

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

ROUNDS = 200 if os.environ.get("PENSTOCK_TEST_PROFILE") == "soak" else 10
OPERATIONS = 120
SHOWN = 30


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_recorded_answers_are_those_of_a_running_apache_kafka(
    case: Case, golden: Transcript, kafka: Player
) -> None:
    recorded = {label: golden[label] for label in case.labels}
    wrong = list(differences(recorded, kafka.transcript_of(case), ""))
    assert not wrong, "recorded / running\n" + "\n".join(map(str, wrong[:SHOWN]))


def test_the_recorded_permissions_are_those_of_a_running_apache_kafka(
    kafka_permissions: Matrix, layout: Layout
) -> None:
    asked = {probe.name: kafka_permissions.row_of(probe) for probe in layout.probes}
    wrong = list(differences(read_golden_permissions(layout.file), asked, ""))
    assert not wrong, "recorded / running\n" + "\n".join(map(str, wrong[:SHOWN]))


def answers(target: Target, seed: int) -> object:
    case = Case(name=f"random-{seed}", key=ApiKey.API_VERSIONS, versions=(0,), play=lambda _: None)
    run = Run(case, 0, target)
    Operations(run, seed, OPERATIONS).play()
    return run.finish()


def test_random_operations_are_answered_alike(kafka: Player, penstock: Player) -> None:
    first = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    for seed in range(first, first + ROUNDS):
        wrong = list(differences(answers(kafka.target, seed), answers(penstock.target, seed), ""))
        print(f"replay: PENSTOCK_TEST_SEED={seed} make differential")  # noqa: T201 - shown when the test fails
        assert not wrong, "Apache Kafka / Penstock\n" + "\n".join(map(str, wrong[:SHOWN]))
