"""What a client of Confluent's API accepts, and the numbers of its errors."""

from __future__ import annotations

import pytest

from penstock.broker.admin.rules.confluent_clients import confluent_error, prefix_of, reads_only_json
from penstock.protocol.errors import ErrorCode
from penstock.protocol.rest.problem import http_problem, problem_of

PATH = "/v3/clusters"


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/json, text/html",
        "application/json;charset=utf-8",
        "application/json, */*;q=0.5",
        "application/json, application/problem+json;q=0",
        "APPLICATION/JSON",
    ],
)
def test_who_likes_json_better_has_plain_errors(accept: str) -> None:
    assert reads_only_json(PATH, accept)
    assert reads_only_json("/kafka/v3/clusters", accept)
    assert not reads_only_json("/v1/nodes", accept)


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "*/*",
        "application/*",
        "application/json, */*",
        "application/json, application/problem+json",
        "application/json;q=0.9, application/problem+json",
        "text/html",
        "application/json;q=none, */*;q=none",
        ",;,",
    ],
)
def test_who_reads_problems_as_well_has_them(accept: str | None) -> None:
    assert not reads_only_json(PATH, accept)


def test_the_prefix_is_that_of_the_request() -> None:
    assert prefix_of("/kafka/v3/clusters") == "/kafka"
    assert prefix_of("/v3/clusters/kafka/v3/") == ""


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 40403),
        (ErrorCode.TOPIC_ALREADY_EXISTS, 40002),
        (ErrorCode.INVALID_CONFIG, 40002),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 40301),
        (ErrorCode.SASL_AUTHENTICATION_FAILED, 40101),
        (ErrorCode.BROKER_NOT_AVAILABLE, 50302),
        (ErrorCode.NOT_COORDINATOR, 50003),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 50002),
        (ErrorCode.GROUP_ID_NOT_FOUND, 404),
        (ErrorCode.SECURITY_DISABLED, 501),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 429),
    ],
)
def test_errors_have_the_numbers_of_confluent(code: ErrorCode, number: int) -> None:
    error = confluent_error(problem_of(code, "Why."))
    assert (error.error_code, error.message) == (number, "Why.")


def test_what_http_refuses_has_its_status() -> None:
    assert confluent_error(http_problem(415, "Unsupported Media Type", "No.")).error_code == 415
