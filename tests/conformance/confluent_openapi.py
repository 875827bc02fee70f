"""Every answer of Confluent's REST API compared with Confluent's own document of it.

`PYTHONPATH=tests:tests/helpers python -m conformance.confluent_openapi DOCUMENT` starts a node and asks it for all that
the document, `api/v3/openapi.yaml` of kafka-rest, describes. An answer whose status the document does not have there,
or that does not fit its schema, is printed, and the exit status is 1. The document is Confluent's: fetch it yourself.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import click
import yaml
from confluent_kafka import Consumer, TopicPartition
from jsonschema import Draft202012Validator
from waiting import wait_for

from penstock.client.client_log import SILENT_LOGGER
from penstock.local.cluster import LocalCluster

TOPIC: Final = "t"
GROUP: Final = "g"
BROKER: Final = 1
NOT_IN_SCHEMAS: Final = frozenset({"example", "examples", "discriminator", "description"})
RECORD: Final = {"key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": {"n": 1}}}
ACL: Final = {
    "resource_type": "TOPIC",
    "resource_name": TOPIC,
    "pattern_type": "LITERAL",
    "principal": "User:ada",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
DELETION: Final = "resource_type=TOPIC&pattern_type=ANY&operation=READ&permission=ANY"
PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
WRITES: Final = (
    ("POST", "/clusters/{cluster_id}/topics", {"topic_name": "new", "partitions_count": 1}),
    ("POST", "/clusters/{cluster_id}/topics", {"topic_name": "new", "partitions_count": 1}),
    ("PATCH", "/clusters/{cluster_id}/topics/{topic_name}", {"partitions_count": 3}),
    ("POST", "/clusters/{cluster_id}/topics/{topic_name}/records", RECORD),
    (
        "POST",
        "/clusters/{cluster_id}/topics/{topic_name}/records:batch",
        {"entries": [{"id": "1", **RECORD}, {"id": "2", "partition_id": 99}]},
    ),
    ("PUT", "/clusters/{cluster_id}/topics/{topic_name}/configs/{name}", {"value": "3600000"}),
    (
        "POST",
        "/clusters/{cluster_id}/topics/{topic_name}/configs:alter",
        {"data": [{"name": "segment.ms", "value": "60000"}, {"name": "retention.ms", "operation": "DELETE"}]},
    ),
    ("DELETE", "/clusters/{cluster_id}/topics/{topic_name}/configs/{name}", None),
    ("PUT", "/clusters/{cluster_id}/broker-configs/{name}", {"value": "5000"}),
    ("POST", "/clusters/{cluster_id}/acls", ACL),
    ("POST", "/clusters/{cluster_id}/acls", {**ACL, "principal": "ada"}),
    ("DELETE", f"/clusters/{{cluster_id}}/acls?{DELETION}", None),
    ("DELETE", "/clusters/{cluster_id}/acls", None),
    ("POST", "/clusters/{cluster_id}/acls:batch", {"data": [ACL, {**ACL, "operation": "WRITE"}]}),
)
"""The second creation of a topic and of an ACL is refused, and so is a deletion that does not say of what."""


@dataclass(frozen=True, slots=True)
class Document:
    """OpenAPI 3.0 as Confluent writes it."""

    content: Mapping[str, Any]

    def paths(self) -> Iterator[str]:
        """Those that can be read."""
        return (path for path, methods in self.content["paths"].items() if "get" in methods)

    def complaints(self, method: str, path: str, status: int, answer: object) -> list[str]:
        """What is wrong with an answer; empty if nothing is."""
        responses = self.content["paths"][path.partition("?")[0]][method.lower()]["responses"]
        response = responses.get(str(status)) or responses.get(f"{status // 100}XX")
        if response is None:
            return [f"the document has no status {status} there"]
        contents = self._found(response).get("content", {})
        if not contents:
            return [] if answer is None else ["the document has no body there"]
        (schema, *_) = (one["schema"] for one in contents.values())
        validator = Draft202012Validator(self._json_schema(schema))
        return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(answer)]

    def _found(self, one: Mapping[str, Any]) -> Mapping[str, Any]:
        """It, or what it refers to."""
        while "$ref" in one:
            found: Any = self.content
            for segment in one["$ref"].removeprefix("#/").split("/"):
                found = found[segment]
            one = found
        return one

    def _json_schema(self, schema: Any) -> Any:
        """The schema as JSON Schema, which has no `nullable`, with all that it refers to put in."""
        if isinstance(schema, list):
            return [self._json_schema(one) for one in schema]
        if not isinstance(schema, Mapping):
            return schema
        found = self._found(schema)
        result = {
            # Properties may have the names of keywords.
            key: {name: self._json_schema(one) for name, one in value.items()}
            if key == "properties"
            else self._json_schema(value)
            for key, value in found.items()
            if key not in NOT_IN_SCHEMAS and key != "nullable"
        }
        if result.get("type") == "int64":
            # So the document has it, for offsets.
            result["type"] = "integer"
        return {"anyOf": [result, {"type": "null"}]} if found.get("nullable") else result


def main() -> None:
    """Print a line for each answer that does not fit, and how many were looked at."""
    document = Document(yaml.safe_load(Path(sys.argv[1]).read_text()))
    with TemporaryDirectory() as folder, LocalCluster(Path(folder) / "cluster", properties=PROPERTIES) as cluster:
        root = f"{cluster.nodes[BROKER].admin}/kafka/v3"
        _, clusters = ask("GET", f"{root}/clusters")
        names = {
            "cluster_id": clusters["data"][0]["cluster_id"],
            "broker_id": BROKER,
            "topic_name": TOPIC,
            "partition_id": 0,
            "consumer_group_id": GROUP,
        }
        ask("POST", _filled(f"{root}/clusters/{{cluster_id}}/topics", names), {"topic_name": TOPIC})
        member = _member(cluster.bootstrap)
        try:
            _, members = ask("GET", _filled(f"{root}/clusters/{{cluster_id}}/consumer-groups/{GROUP}/consumers", names))
            names["consumer_id"] = members["data"][0]["consumer_id"]
            questions = [*WRITES, *(("GET", path, None) for path in document.paths())]
            found = [
                f"{method} {path}: {complaint}"
                for method, path, body in questions
                for complaint in document.complaints(
                    method, path, *ask(method, _filled(root + path, {**names, "name": _config_of(path)}), body)
                )
            ]
        finally:
            member.close()
    click.echo("\n".join([*found, f"{len(questions)} answers, {len(found)} complaints"]))
    sys.exit(1 if found else 0)


def ask(method: str, url: str, body: object = None) -> tuple[int, Any]:
    """The status and the JSON of the answer, None without a body; as a client asks that reads nothing but JSON."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    try:
        with urlopen(Request(url, data=content, headers=headers, method=method), timeout=60) as answer:
            return answer.status, _decoded(answer.read())
    except HTTPError as error:
        with error:
            return error.code, _decoded(error.read())


def _decoded(content: bytes) -> Any:
    return json.loads(content) if content else None


def _filled(url: str, names: Mapping[str, object]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: str(names[match[1]]), url)


def _config_of(path: str) -> str:
    """A key that such a resource has."""
    if "/topics/" in path:
        return "retention.ms"
    return "max.connections" if "broker-configs" in path else "num.io.threads"


def _member(bootstrap: str) -> Consumer:
    """The member of GROUP, which has committed."""
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False}
    member = Consumer(settings, logger=SILENT_LOGGER)
    member.subscribe([TOPIC])

    def is_assigned() -> bool:
        member.poll(0.1)
        return bool(member.assignment())

    wait_for(is_assigned, "the member has partitions")
    member.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    return member


if __name__ == "__main__":
    main()
