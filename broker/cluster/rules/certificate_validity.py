"""Until when certificates are valid, read from their bytes: OpenSSL shows Python only those of other sides."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
# Tags of DER (X.690).
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
# RFC 5280 4.1.2.5.1: years of two digits are 1950 to 2049.
_LAST_OF_2000S: Final = 49


def expiry_s(pem: str) -> int | None:
    """The first end of validity of all certificates in a PEM text, in seconds since 1970.

    None where there is no certificate, or one that cannot be read.
    """
    try:
        return min((_not_after_s(b64decode(text)) for text in _PEM.findall(pem)), default=None)
    except (ValueError, IndexError):
        return None


def _not_after_s(certificate: bytes) -> int:
    """RFC 5280 4.1: Certificate { TBSCertificate { [0] version, serialNumber, signature, issuer, Validity, … } … }."""
    ((_, signed),) = _elements(certificate)
    (_, fields), *_ = _elements(signed)
    without_version = [content for tag, content in _elements(fields) if tag != _VERSION]
    _, not_after = _elements(without_version[3])
    return _time_s(*not_after)


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of DER elements that follow each other."""
    position = 0
    while position < len(data):
        tag, length, start = data[position], data[position + 1], position + 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[start : start + size], "big")
            start += size
        position = start + length
        yield tag, data[start:position]


def _time_s(tag: int, content: bytes) -> int:
    text = content.decode()
    if tag == _UTC_TIME:
        text = f"{'20' if int(text[:2]) <= _LAST_OF_2000S else '19'}{text}"
    elif tag != _GENERALIZED_TIME:
        raise ValueError(f"tag {tag:#x} is no time")
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp())
