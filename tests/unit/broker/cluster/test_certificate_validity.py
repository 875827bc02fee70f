"""Until when a chain of certificates is valid."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trustme
from certificates import SINCE_THEN, Authority

from penstock.broker.cluster.rules.certificate_validity import expiry_s


def issue(not_after: datetime, not_before: datetime | None = None) -> str:
    issued = trustme.CA().issue_cert("localhost", not_before=not_before, not_after=not_after)
    return issued.private_key_and_cert_chain_pem.bytes().decode()


@pytest.mark.parametrize("year", [2021, 2031, 2049, 2050, 2300])
def test_the_end_is_that_of_the_certificate_in_either_form_of_time(year: int) -> None:
    """From 2050 on the time is a GeneralizedTime, before an UTCTime (RFC 5280 4.1.2.5)."""
    end = datetime(year, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert expiry_s(issue(end, datetime(2020, 1, 1, tzinfo=UTC))) == int(end.timestamp())


def test_a_chain_is_valid_as_long_as_all_of_it() -> None:
    old, new = issue(SINCE_THEN, datetime(2020, 1, 1, tzinfo=UTC)), Authority().issue()
    assert expiry_s(new + old) == expiry_s(old + new) == int(SINCE_THEN.timestamp())


@pytest.mark.parametrize("body", ["", "AAAA", "MAA=", "MIIB", "not base64!"])
def test_what_is_no_certificate_has_no_end(body: str) -> None:
    assert expiry_s(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----") is None
    assert expiry_s("") is None
