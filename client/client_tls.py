"""TLS of a client by its properties, in librdkafka's names."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping

import click


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Raises ClickException."""
    try:
        context = ssl.create_default_context(
            cafile=properties.get("ssl.ca.location"), cadata=properties.get("ssl.ca.pem")
        )
        _load_certificate(context, properties)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"The certificates that were named cannot be used: {error}.") from error
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    # Without any, OpenSSL would ask for it on the terminal.
    password = properties.get("ssl.key.password", "")
    location, chain = properties.get("ssl.certificate.location"), properties.get("ssl.certificate.pem")
    if location is not None:
        context.load_cert_chain(location, properties.get("ssl.key.location"), password=password)
    elif chain is not None:
        # OpenSSL, as Python has it, reads files only; this one is for its owner alone and is removed at once.
        with tempfile.NamedTemporaryFile() as file:
            file.write("\n".join((chain, properties.get("ssl.key.pem", ""))).encode())
            file.flush()
            context.load_cert_chain(file.name, password=password)
