"""Takes the golden matrix anew: part of `make differential-golden`. Needs Java and Maven.

Asks a new Apache Kafka for each layout, writes `tests/golden/kafka-4.3.1-permissions….json.xz`, and the same for people
to files of a folder if one is named.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from differential.permissions import brokers
from differential.permissions.golden import as_text, write_golden
from differential.permissions.layout import Layout, closed, open_to_all

from penstock.local.apache_kafka.jars import install


def record(layout: Layout) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-permissions-") as folder,
        brokers.apache_kafka(install(), Path(folder), layout) as matrix,
    ):
        rows = {probe.name: matrix.row_of(probe) for probe in layout.probes}
    write_golden(rows, layout.file)
    for folder in sys.argv[1:]:
        (Path(folder) / f"{layout.name}.txt").write_text(as_text(rows))
    cells = sum(len(states) for row in rows.values() for states in row.values())
    size = layout.file.stat().st_size
    sys.stdout.write(f"{len(rows)} questions, {cells} cells, {size} bytes in {layout.file.name}\n")


def main() -> None:
    for layout in (closed(), open_to_all()):
        record(layout)


if __name__ == "__main__":
    main()
