"""Penstock answers as Apache Kafka does, but for the differences that are known and explained.

The script of operations is played against a node of ours and compared, field by field, with what Apache Kafka answered:
as recorded in tests/golden, and with `make differential` also by a broker that runs beside ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from differential.cases import CASES
from differential.comparison import Difference, differences, known_differences, listed, stale, unexplained
from differential.player import Player
from differential.script import Case, Transcript

from penstock.protocol.apis import APIS, ApiKey

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

SHOWN = 30

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

# Served there only with a plug-in that takes what clients push.
NOT_AT_APACHE_KAFKA = {"GetTelemetrySubscriptions v0", "PushTelemetry v0"}


def found_in(case: Case, golden: Transcript, penstock: Player) -> Iterator[Difference]:
    theirs = {label: golden[label] for label in case.labels}
    yield from differences(theirs, penstock.transcript_of(case), "")


@each_case
def test_answers_are_apache_kafkas(case: Case, golden: Transcript, penstock: Player) -> None:
    assert golden.keys() >= set(case.labels), "the script has grown: make differential-golden"
    wrong = unexplained(list(found_in(case, golden, penstock)), known_differences())
    shown = "\n".join(map(str, wrong[:SHOWN]))
    assert not wrong, f"{len(wrong)} answers differ, as path: Apache Kafka / Penstock\n{shown}"


def test_every_known_difference_is_there(golden: Transcript, penstock: Player) -> None:
    found = [one for case in CASES.values() for one in found_in(case, golden, penstock)]
    unused = [pattern.path for pattern in stale(found, known_differences())]
    assert not unused, f"nothing differs there any more, take these out of known_differences.toml: {unused}"


def test_every_known_difference_is_listed_for_readers() -> None:
    wanted = {pattern.divergence for pattern in known_differences()} - {""}
    assert wanted <= listed(), f"no rows of docs/divergences.md begin with {wanted - listed()}"


def test_every_served_version_is_asked(penstock: Player) -> None:
    asked = {
        step["api"]
        for answers in penstock.whole_transcript().values()
        for step in answers.values()
        if "api" in step  # answered, that is
    }
    api_versions = CASES["api-versions"]
    told = penstock.transcript_of(api_versions)[api_versions.label(4)]["plain"]["answer"]["api_keys"]
    served = {
        f"{api.name} v{version}"
        for one in told
        for api in (APIS[ApiKey(one["api_key"])],)
        for version in range(api.min_version, one["max_version"] + 1)
    }
    assert served - NOT_AT_APACHE_KAFKA <= asked, f"no case asks {served - asked}"
