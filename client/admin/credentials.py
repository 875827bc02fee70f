"""How a client of the HTTP administration proves who it is, and checks who answers."""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final

from .admin_address import AdminAddress

_LOCALHOST: Final = "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminCredentials:
    """`authorization` is the value of that header, which only goes where no other machine can read it: through https,
    or to this machine. `tls` is what https is checked with, and has the certificate of the client if there is one."""

    authorization: str | None = field(default=None, repr=False)
    tls: SSLContext | None = None

    @classmethod
    def password(cls, user: str, password: str, tls: SSLContext | None = None) -> AdminCredentials:
        """Of PLAIN or SCRAM (RFC 7617)."""
        told = base64.b64encode(f"{user}:{password}".encode()).decode()
        return cls(authorization=f"Basic {told}", tls=tls)

    @classmethod
    def token(cls, token: str, tls: SSLContext | None = None) -> AdminCredentials:
        """Of OAUTHBEARER (RFC 6750)."""
        return cls(authorization=f"Bearer {token}", tls=tls)

    def headers_for(self, address: AdminAddress) -> dict[str, str]:
        """What a request to that address adds to its headers."""
        if self.authorization is None or not (address.is_encrypted or _is_this_machine(address.host)):
            return {}
        return {"Authorization": self.authorization}


NO_CREDENTIALS: Final = AdminCredentials()


def _is_this_machine(host: str) -> bool:
    if host.lower() == _LOCALHOST:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
