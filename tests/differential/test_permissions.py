"""Who may do what: each question, each resource that it touches, each state of the ACLs, answered as by Apache Kafka.

Compared are errors with their sentences, what is shown at all, and the operations that answers tell (`permissions/`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from differential.comparison import Difference, differences, known_differences, listed, stale, unexplained
from differential.permissions import brokers
from differential.permissions.golden import Rows, read_golden
from differential.permissions.layout import Layout, closed, open_to_all
from differential.permissions.matrix import Matrix
from differential.permissions.probes import Probe

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KNOWN = Path(__file__).parent / "permissions" / "known_differences.toml"
SHOWN = 30

LAYOUTS = (closed(), open_to_all())
each_question = pytest.mark.parametrize(
    ("layout", "probe"),
    [(layout, probe) for layout in LAYOUTS for probe in layout.probes],
    ids=[f"{layout.name}-{probe.name}" for layout in LAYOUTS for probe in layout.probes],
)


class Matrices:
    """Of each layout what Apache Kafka answered and a node of ours that is asked, both had when they are needed."""

    def __init__(self, folder: Callable[[str], Path], stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._matrices: dict[str, tuple[Rows, Matrix]] = {}

    def of(self, layout: Layout) -> tuple[Rows, Matrix]:
        if layout.name not in self._matrices:
            node = brokers.penstock(self._folder(f"penstock-permissions-{layout.name}"), layout)
            self._matrices[layout.name] = read_golden(layout.file), self._stack.enter_context(node)
        return self._matrices[layout.name]

    def found_in(self, layout: Layout, probe: Probe) -> list[Difference]:
        rows, matrix = self.of(layout)
        return list(differences({probe.name: rows[probe.name]}, {probe.name: matrix.row_of(probe)}, ""))


@pytest.fixture(scope="session")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrices]:
    with ExitStack() as stack:
        yield Matrices(tmp_path_factory.mktemp, stack)


@each_question
def test_permissions_are_apache_kafkas(layout: Layout, probe: Probe, matrices: Matrices) -> None:
    rows, matrix = matrices.of(layout)
    assert probe.name in rows, "the matrix has grown: make differential-golden"
    if not matrix.is_served(probe):
        pytest.skip(f"{probe.key.name} is not served")
    wrong = unexplained(matrices.found_in(layout, probe), known_differences(KNOWN))
    shown = "\n".join(map(str, wrong[:SHOWN]))
    assert not wrong, f"{len(wrong)} cells differ, as question.resource.state: Apache Kafka / Penstock\n{shown}"


def test_every_known_difference_of_permissions_is_there(matrices: Matrices) -> None:
    known = known_differences(KNOWN)
    found: list[Difference] = []
    unused = [pattern.path for pattern in known]
    for layout in LAYOUTS:
        _, matrix = matrices.of(layout)
        for probe in layout.probes:
            if matrix.is_served(probe):
                found += matrices.found_in(layout, probe)
        unused = [pattern.path for pattern in stale(found, known)]
        if not unused:
            break
    assert not unused, f"nothing differs there any more, take these out of {KNOWN.name}: {unused}"


def test_every_known_difference_of_permissions_is_listed_for_readers() -> None:
    wanted = {pattern.divergence for pattern in known_differences(KNOWN)} - {""}
    assert wanted <= listed(), f"no rows of docs/divergences.md begin with {wanted - listed()}"
