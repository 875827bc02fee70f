"""Authorities and the certificates that they issue, made for one test."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import trustme

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SINCE_THEN = datetime(2021, 1, 1, tzinfo=UTC)


class Authority:
    """One whom some trust. Keys and certificates are PEM texts."""

    def __init__(self) -> None:
        self._authority = trustme.CA()

    @property
    def certificate(self) -> str:
        return self._authority.cert_pem.bytes().decode()

    def issue(
        self,
        *names: str,
        common_name: str | None = None,
        is_expired: bool = False,
        not_after: datetime | None = None,
    ) -> str:
        """A private key and the certificate of it, with these DNS names and addresses."""
        issued = self._authority.issue_cert(
            *(names or ("localhost",)),
            common_name=common_name,
            not_before=LONG_AGO if is_expired else None,
            not_after=SINCE_THEN if is_expired else not_after,
        )
        return issued.private_key_and_cert_chain_pem.bytes().decode()

    def issue_for_node(self, node_id: int, *, is_expired: bool = False) -> str:
        """One that a node on this machine shows as a server and as a client."""
        return self.issue(f"node-{node_id}", "localhost", "127.0.0.1", is_expired=is_expired)

    def client_context(self, folder: Path, own: str | None = None) -> ssl.SSLContext:
        """Of a client that trusts this authority and shows `own`."""
        context = ssl.create_default_context(cadata=self.certificate)
        if own is not None:
            file = folder / f"client-{len(list(folder.iterdir()))}.pem"
            file.write_text(own)
            context.load_cert_chain(file)
        return context
