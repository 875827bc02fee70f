"""Who may do what: each question, each resource that it touches, each state of the ACLs, answered as by Apache Kafka.

Compared are errors with their sentences, what is shown at all, and the operations that answers tell (`permissions/`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from differential.comparison import Difference, differences, known_differences, listed, stale, unexplained
from differential.permissions import brokers
from differential.permissions.golden import Rows, read_golden
from differential.permissions.matrix import Matrix
from differential.permissions.probes import Probe
from differential.permissions.questions import PROBES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KNOWN = Path(__file__).parent / "permissions" / "known_differences.toml"
SHOWN = 30

each_question = pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)


@pytest.fixture(scope="session")
def rows() -> Rows:
    return read_golden()


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    with brokers.penstock(tmp_path_factory.mktemp("penstock-permissions")) as asked:
        yield asked


def found_in(probe: Probe, rows: Rows, matrix: Matrix) -> list[Difference]:
    return list(differences({probe.name: rows[probe.name]}, {probe.name: matrix.row_of(probe)}, ""))


@each_question
def test_permissions_are_apache_kafkas(probe: Probe, rows: Rows, matrix: Matrix) -> None:
    assert probe.name in rows, "the matrix has grown: make differential-golden"
    if not matrix.is_served(probe):
        pytest.skip(f"{probe.key.name} is not served")
    wrong = unexplained(found_in(probe, rows, matrix), known_differences(KNOWN))
    shown = "\n".join(map(str, wrong[:SHOWN]))
    assert not wrong, f"{len(wrong)} cells differ, as question.resource.state: Apache Kafka / Penstock\n{shown}"


def test_every_known_difference_of_permissions_is_there(rows: Rows, matrix: Matrix) -> None:
    found = [one for probe in PROBES.values() if matrix.is_served(probe) for one in found_in(probe, rows, matrix)]
    unused = [pattern.path for pattern in stale(found, known_differences(KNOWN))]
    assert not unused, f"nothing differs there any more, take these out of {KNOWN.name}: {unused}"


def test_every_known_difference_of_permissions_is_listed_for_readers() -> None:
    wanted = {pattern.divergence for pattern in known_differences(KNOWN)} - {""}
    assert wanted <= listed(), f"no rows of docs/divergences.md begin with {wanted - listed()}"
