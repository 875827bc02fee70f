"""Properties of a client in the names of Apache Kafka's clients, those of librdkafka, or both, in the latter's names.

    security.protocol            PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    sasl.mechanism               PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
    sasl.jaas.config             the login module with username and password, or sasl.username and sasl.password
    sasl.oauthbearer.token.endpoint.url    file:///… holds the token; http gives it for clientId and clientSecret
    ssl.truststore.…, ssl.keystore.…       PEM, in files or in the properties (KIP-651), or ssl.ca.location and the like

What only Java's clients have (classes, metrics, how long a call may take) has no meaning here and is left out, so that
one file serves both. Errors show no values.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from ..protocol.errors import ConfigError
from ..protocol.jaas import JaasEntry, parse_jaas

JAAS: Final = "sasl.jaas.config"
MECHANISM: Final = "sasl.mechanisms"
USERNAME: Final = "sasl.username"
PASSWORD: Final = "sasl.password"
TOKEN_FILE: Final = "sasl.oauthbearer.token.file"
"""Ours: the path of a token; librdkafka never sees it."""
UNSECURED_SUBJECT: Final = "sasl.oauthbearer.unsecured.subject"
"""Ours, too: whom an unsecured token names."""
DELEGATION_TOKEN: Final = "sasl.scram.tokenauth"
"""Ours, too: whether name and password are those of a delegation token."""
SECRETS: Final = frozenset(
    {
        JAAS,
        PASSWORD,
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
    }
)
"""Keys whose values must not be seen, by either name."""
_SECRET_ENDINGS: Final = (
    *(".password", ".passphrase", ".secret", ".secret.key", ".jaas.config", ".keystore.key", ".key.pem"),
    "cluster.scram.credentials",
)
"""Of the keys of brokers, Penstock's own among them, and of clients."""
_LOGIN_MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
# Only Java's clients have classes, stores and runtimes to choose among, calls that wait, and meters of their own.
_OF_JAVA: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "buffer.memory",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "metadata.max.idle.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "security.providers",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "value.deserializer",
        "value.serializer",
    }
)
_RENAMED: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def is_secret(key: str) -> bool:
    """Whether the value of a property is a password. Keys of one listener end like those of all."""
    return key.endswith(_SECRET_ENDINGS)


def librdkafka_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Raises ConfigError with one sentence."""
    given = {name: text for name, text in properties.items() if not name.startswith("config.providers")}
    kept = {name: text for name, text in given.items() if name not in _OF_JAVA and name not in _TRANSLATIONS}
    found = {_RENAMED.get(name, name): text for name, text in kept.items()}
    for name, translate in _TRANSLATIONS.items():
        if name in given:
            found |= translate(given)
    _check(found)
    return found


def _protocol(given: Mapping[str, str]) -> dict[str, str]:
    protocol = given["security.protocol"].strip().upper()
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"security.protocol must be one of {', '.join(_PROTOCOLS)}, but is {protocol}.")
    return {"security.protocol": protocol.lower()}


def _mechanism(given: Mapping[str, str]) -> dict[str, str]:
    return {MECHANISM: given["sasl.mechanism"].strip()}


def _jaas(given: Mapping[str, str]) -> dict[str, str]:
    if not given[JAAS].strip():
        return {}
    entry = parse_jaas(JAAS, given[JAAS])
    known = _LOGIN_MODULES.get(entry.login_module)
    if known is None:
        raise ConfigError(
            f"{JAAS} names {entry.login_module}, but can only name {', '.join(_LOGIN_MODULES)}: no other class can be "
            "loaded here."
        )
    # Kafka's default is GSSAPI, which no login module here is for.
    mechanism = given.get("sasl.mechanism", given.get(MECHANISM, "")).strip() or known[0]
    if mechanism not in known:
        raise ConfigError(
            f"sasl.mechanism is {mechanism}, but {JAAS} names {entry.login_module.rpartition('.')[2]}, which is for "
            f"{' and '.join(known)}."
        )
    login = _token_login(entry) if mechanism == "OAUTHBEARER" else _password_login(entry)
    return {MECHANISM: mechanism, **login}


def _password_login(entry: JaasEntry) -> dict[str, str]:
    missing = [option for option in ("username", "password") if option not in entry.options]
    if missing:
        raise ConfigError(f"{JAAS} has no option {missing[0]}.")
    is_token = entry.options.get("tokenauth", "").lower() == "true"
    own = {DELEGATION_TOKEN: "true"} if is_token else {}
    return {USERNAME: entry.options["username"], PASSWORD: entry.options["password"], **own}


def _token_login(entry: JaasEntry) -> dict[str, str]:
    names = {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
        "unsecuredLoginStringClaim_sub": UNSECURED_SUBJECT,
    }
    return {names[option]: value for option, value in entry.options.items() if option in names}


def _token_endpoint(given: Mapping[str, str]) -> dict[str, str]:
    text = given["sasl.oauthbearer.token.endpoint.url"].strip()
    url = urlsplit(text)
    if url.scheme == "file":
        return {TOKEN_FILE: unquote(url.path)}
    return {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": text}


def _host_check(given: Mapping[str, str]) -> dict[str, str]:
    key = "ssl.endpoint.identification.algorithm"
    return {key: given[key].strip().lower() or "none"}


def _truststore(given: Mapping[str, str]) -> dict[str, str]:
    _check_pem(given, "ssl.truststore")
    return {"ssl.ca.location": given["ssl.truststore.location"]}


def _trusted(given: Mapping[str, str]) -> dict[str, str]:
    _check_pem(given, "ssl.truststore")
    return {"ssl.ca.pem": given["ssl.truststore.certificates"]}


def _keystore(given: Mapping[str, str]) -> dict[str, str]:
    _check_pem(given, "ssl.keystore")
    # One file has the key and the certificates.
    location = given["ssl.keystore.location"]
    return {"ssl.certificate.location": location, "ssl.key.location": location}


def _chain(given: Mapping[str, str]) -> dict[str, str]:
    _check_pem(given, "ssl.keystore")
    return {"ssl.certificate.pem": given["ssl.keystore.certificate.chain"]}


def _key(given: Mapping[str, str]) -> dict[str, str]:
    _check_pem(given, "ssl.keystore")
    return {"ssl.key.pem": given["ssl.keystore.key"]}


def _store_password(store: str) -> Callable[[Mapping[str, str]], dict[str, str]]:
    def check(given: Mapping[str, str]) -> dict[str, str]:
        _check_pem(given, store)
        raise ConfigError(f"{store}.password is set, but a PEM store has no password; ssl.key.password is of the key.")

    return check


def _check_pem(given: Mapping[str, str], store: str) -> None:
    kind = given.get(f"{store}.type", "JKS").strip()
    if kind.upper() != "PEM":
        by_default = "" if f"{store}.type" in given else " by default"
        raise ConfigError(
            f"{store}.type is {kind}{by_default}, but only PEM is read here: convert the store with keytool and "
            f"openssl, and set {store}.type=PEM."
        )


_TRANSLATIONS: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, str]]]] = {
    "security.protocol": _protocol,
    "sasl.mechanism": _mechanism,
    JAAS: _jaas,
    "sasl.oauthbearer.token.endpoint.url": _token_endpoint,
    "ssl.endpoint.identification.algorithm": _host_check,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.certificates": _trusted,
    "ssl.keystore.location": _keystore,
    "ssl.keystore.certificate.chain": _chain,
    "ssl.keystore.key": _key,
    "ssl.keystore.password": _store_password("ssl.keystore"),
    "ssl.truststore.password": _store_password("ssl.truststore"),
    "ssl.keystore.type": lambda _given: {},
    "ssl.truststore.type": lambda _given: {},
}


def _check(found: Mapping[str, str]) -> None:
    if not found.get("security.protocol", "plaintext").startswith("sasl"):
        return
    mechanism = found.get(MECHANISM)
    if mechanism is None:
        raise ConfigError(f"security.protocol is {found['security.protocol'].upper()}, so sasl.mechanism must be set.")
    if mechanism != "OAUTHBEARER" and not (USERNAME in found and PASSWORD in found):
        raise ConfigError(f"sasl.mechanism is {mechanism}, so {JAAS}, or {USERNAME} and {PASSWORD}, must be set.")
