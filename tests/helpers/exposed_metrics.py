"""The metrics of a node in this process, as Prometheus would read them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families as parse_text

from penstock.broker.node.server import Node


class Samples:
    """Of one exposition."""

    def __init__(self, text: str) -> None:
        self.families = list(parse_text(text))
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        return self._values[name, frozenset(labels.items())]

    def labels(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for one, labels in self._values if one == name]


async def exposed(node: Node) -> Samples:
    body, content_type = await node.metrics.exposition(None)
    assert content_type.startswith("text/plain")
    return Samples(body.decode())
