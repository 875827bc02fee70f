"""What commands about users, ACLs, quotas and tokens send, and what they never print."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock import cli
from penstock.client.security import acl_commands, quota_commands, token_commands, user_commands
from penstock.protocol.errors import ErrorCode
from penstock.protocol.scram import BY_NUMBER

Run = Callable[..., Result]
COMMANDS = (acl_commands, quota_commands, token_commands, user_commands)


class Cluster:
    """Remembers what it is asked, and answers in order."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answers: list[Any] = []

    def ask(self, _bootstrap: object, request: object) -> Any:
        self.asked.append(request)
        return self.answers.pop(0)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    cluster = Cluster()
    for module in COMMANDS:
        monkeypatch.setattr(module, "ask", cluster.ask)
    yield cluster
    assert not cluster.answers, "all answers were asked for"


def run(*words: str, stdin: str | None = None, status: int = 0) -> Result:
    answer = CliRunner().invoke(cli.main, words, input=stdin, prog_name="penstock")
    assert answer.exit_code == status, answer.output
    return answer


def results(*codes: ErrorCode) -> SimpleNamespace:
    return SimpleNamespace(results=[SimpleNamespace(error_code=int(code), error_message=None) for code in codes])


def credentials(**found: dict[int, int]) -> SimpleNamespace:
    return SimpleNamespace(
        error_code=0,
        error_message=None,
        results=[
            SimpleNamespace(
                user=user,
                error_code=0,
                error_message=None,
                credential_infos=[SimpleNamespace(mechanism=m, iterations=i) for m, i in infos.items()],
            )
            for user, infos in found.items()
        ],
    )


def test_a_password_is_salted_before_it_leaves_and_never_printed(cluster: Cluster, tmp_path: Path) -> None:
    cluster.answers = [results(ErrorCode.NONE)] * 4
    (tmp_path / "password").write_text("hunter2hunter2\nnot this\n")
    by_file = run("user", "add", "ada", "--password-file", str(tmp_path / "password"), "--json")
    by_pipe = run("user", "add", "ada", stdin="hunter2hunter2\n")
    assert json.loads(by_file.stdout)["mechanisms"] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    changes = [request.upsertions[0] for request in cluster.asked]
    assert len({change.salt for change in changes}) == 4
    for change in changes:
        mechanism = BY_NUMBER[int(change.mechanism)]
        expected = mechanism.salted_password("hunter2hunter2", change.salt, int(change.iterations))
        assert change.salted_password == expected
    assert "hunter2" not in by_file.output + by_pipe.output + repr(cluster.asked)


def test_an_empty_password_is_refused(cluster: Cluster) -> None:
    assert "The password is empty." in run("user", "add", "ada", stdin="\n", status=1).stderr


@pytest.mark.parametrize("iterations", ["4095", "16385"])
def test_iterations_have_the_bounds_of_kafkas_controller(cluster: Cluster, iterations: str) -> None:
    run("user", "add", "ada", "--iterations", iterations, stdin="x\n", status=2)


def test_users_are_listed_by_name_and_deleted_with_all_that_they_have(cluster: Cluster) -> None:
    cluster.answers = [credentials(bob={2: 8192}, ada={1: 4096})]
    assert run("user", "list").stdout.splitlines()[1:] == [
        "ada   SCRAM-SHA-256        4096",
        "bob   SCRAM-SHA-512        8192",
    ]
    cluster.answers = [credentials(bob={1: 4096, 2: 8192}), results(ErrorCode.NONE), results(ErrorCode.NONE)]
    deleted = json.loads(run("user", "delete", "bob", "--json").stdout)
    assert deleted == {"user": "bob", "deleted": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}
    cluster.answers = [results(ErrorCode.RESOURCE_NOT_FOUND)]
    missing = run("user", "delete", "bob", "-m", "scram-sha-512", status=1)
    assert missing.stderr == "Error: User bob, SCRAM-SHA-512: there is no such password.\n"


def test_a_refused_acl_is_named(cluster: Cluster) -> None:
    cluster.answers = [results(ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)]
    words = ("acl", "add", "--allow-principal", "User:ada", "--topic", "a", "--topic", "b", "--operation", "read")
    refused = run(*words, status=1)
    assert refused.stderr.startswith("Error: allow Read on topic b to User:ada: ")
    (request,) = cluster.asked
    assert [one.resource_name for one in request.creations] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("acl add --topic a", "--allow-principal or --deny-principal says whom"),
        ("acl add --allow-principal User:ada", "Which resource"),
        ("acl add --allow-principal ada --topic a", "is not of the form User:NAME"),
        ("acl add --allow-principal User:ada --group g --producer", "are about a --topic"),
        ("acl add --allow-principal User:ada --topic a --consumer", "about a --group"),
        ("acl add --allow-principal User:ada --topic a --idempotent", "--idempotent goes with --producer"),
        ("acl add --allow-principal User:ada --topic a --producer --operation Read", "go with no others"),
        ("acl add --deny-principal User:ada --topic a --producer", "go with no others"),
        ("acl add --allow-principal User:ada --group g --operation Write", "is no operation of a group"),
        ("acl add --allow-principal User:ada --topic a --resource-pattern-type match", "match"),
        ("acl remove", "Which resource"),
        ("acl add --topic t --deny-principal User:a --deny-host 10.0.0.0/8", "which '10.0.0.0/8' is not"),
        ("acl add --topic t --allow-principal User:a --allow-host localhost", "which 'localhost' is not"),
        ("quota set producer_byte_rate=1", "Whose quota"),
        ("quota set producer_byte_rate=x --user a", "is a number, but got 'x'"),
        ("quota set producer_byte_rate=inf --user a", "is a number, but got 'inf'"),
        ("quota set request_percentage=nan --user a", "is a number, but got 'nan'"),
        ("quota set bytes=1 --user a", "bytes is no quota"),
        ("quota set producer_byte_rate=1 --user a --user-default", "exclude each other"),
        ("quota set connection_creation_rate=1 --ip 10.0.0.1 --user a", "goes with neither"),
        ("token create --owner ada", "is not of the form User:NAME"),
    ],
)
def test_what_cannot_be_meant_is_status_2(cluster: Cluster, words: str, sentence: str) -> None:
    answer = run(*words.split(), status=2)
    assert sentence in " ".join(answer.stderr.split())
    assert cluster.asked == []


def test_removed_are_the_acls_that_add_makes_or_all_of_a_resource(cluster: Cluster) -> None:
    match = SimpleNamespace(
        error_code=0,
        error_message=None,
        resource_type=2,
        resource_name="a",
        pattern_type=3,
        principal="User:ada",
        host="*",
        operation=3,
        permission_type=3,
    )
    filtered = SimpleNamespace(error_code=0, error_message=None, matching_acls=[match])
    cluster.answers = [SimpleNamespace(filter_results=[filtered]), SimpleNamespace(filter_results=[filtered])]
    run("acl", "remove", "--topic", "a", "--allow-principal", "User:ada", "--operation", "Read")
    everything = json.loads(run("acl", "remove", "--topic", "a", "--json").stdout)
    assert everything["removed"][0]["operation"] == "Read"
    (one,), (whole,) = (request.filters for request in cluster.asked)
    assert (one.principal_filter, one.host_filter, one.operation, one.permission_type) == ("User:ada", "*", 3, 3)
    assert (whole.principal_filter, whole.host_filter, whole.operation, whole.permission_type) == (None, None, 1, 1)


def test_quotas_of_a_user_a_default_and_an_address(cluster: Cluster) -> None:
    altered = SimpleNamespace(entries=[SimpleNamespace(error_code=0, error_message=None)])
    cluster.answers = [altered, altered]
    told = run("quota", "set", "producer_byte_rate=1e6", "--user", "ada", "--client-id-default")
    assert told.stderr == "user ada, client-id <default>: producer_byte_rate 1000000.\n"
    run("quota", "remove", "producer_byte_rate", "--ip-default")
    first, second = (request.entries[0] for request in cluster.asked)
    assert [(part.entity_type, part.entity_name) for part in first.entity] == [("user", "ada"), ("client-id", None)]
    assert [(part.entity_type, part.entity_name) for part in second.entity] == [("ip", None)]
    assert [(one.remove, float(one.value)) for one in (*first.ops, *second.ops)] == [(False, 1e6), (True, 0.0)]


def test_the_hmac_of_a_token_is_read_and_not_told(cluster: Cluster) -> None:
    ended = SimpleNamespace(error_code=0, expiry_timestamp=datetime(2026, 1, 2, tzinfo=UTC))
    secret = base64.b64encode(b"mark" * 16).decode()
    cluster.answers = [ended, ended]
    outputs = run("token", "renew", stdin=secret).output + run("token", "expire", "--json", stdin=f"{secret}\n").output
    assert outputs == 'The token ends at 2026-01-02T00:00:00.000Z.\n{"expiry_timestamp_ms": 1767312000000}\n'
    assert [request.hmac for request in cluster.asked] == [b"mark" * 16] * 2
    wrong = run("token", "renew", stdin="no base64!", status=1)
    assert wrong.stderr == "Error: The HMAC is not base64, as `penstock token create` prints it.\n"


def test_a_list_of_tokens_has_hmacs_only_where_they_are_asked_for(cluster: Cluster) -> None:
    token = SimpleNamespace(
        token_id="id-1",
        hmac=b"mark",
        principal_type="User",
        principal_name="ada",
        token_requester_principal_type="User",
        token_requester_principal_name="ada",
        renewers=[SimpleNamespace(principal_type="User", principal_name="bob")],
        issue_timestamp=1,
        expiry_timestamp=2,
        max_timestamp=3,
    )
    secret = base64.b64encode(b"mark").decode()
    cluster.answers = [SimpleNamespace(error_code=0, tokens=[token]) for _ in range(4)]
    for words in (("token", "list"), ("token", "list", "--json")):
        assert secret not in run(*words).output
        assert secret in run(*words, "--hmac").output
