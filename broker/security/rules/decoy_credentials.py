"""The credential of SCRAM that a user or token without one is shown, so that nothing tells which names exist.

Salt and iterations are told to everyone who begins an exchange (RFC 5802 §5.1), and iterations are felt in the time
that a password takes over HTTP. So both are drawn, by a secret and the name, as credentials of the mechanism have them:
each shape as often as it occurs. Most draws stay when credentials come and go (weighted rendezvous hashing); a name
whose draw changes has another salt, too, like a user whose password was set anew.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from ....protocol.scram import ITERATIONS_MIN, ScramMechanism
from ....quorum.metadata.security_image import ScramCredential, ScramUser

SHAPES_MAX: Final = 32
"""That draws are made of, the most frequent ones: each costs a hash."""
SALT_BYTES_MAX: Final = 1024
"""Of a drawn salt; who sets a credential chooses its length."""
_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_KAFKA_SALTS: Final = 2**130
"""The salts of Kafka's clients are numbers below, written in base 36 (`ScramFormatter.secureRandomString`)."""
_SPARE_BYTES: Final = 16
"""Of a draw that is reduced to a range, so that all of it is equally likely."""


class Shape(NamedTuple):
    """What a client sees of a credential, apart from the salt's bytes."""

    iterations: int
    salt_bytes: int
    is_number: bool
    """Whether the salt is a number in base 36, as Kafka's clients make it."""


MakeDecoy: TypeAlias = Callable[[ScramMechanism, str, bool], ScramCredential]
"""For a user by his name or, with True, for a delegation token by its id."""
OF_KAFKA: Final = Shape(ITERATIONS_MIN, 26, True)
"""By kafka-configs as it comes; for as long as there are no users."""
OF_TOKENS: Final = Shape(ITERATIONS_MIN, 32, False)
"""See `sasl_mechanisms.token_credential`."""
_Weighted: TypeAlias = tuple[tuple[Shape, int], ...]


class DecoyCredentials:
    """The same on all nodes that have the same key and the same credentials."""

    def __init__(self, key: bytes, credentials: Callable[[], Mapping[ScramUser, ScramCredential]]) -> None:
        """`credentials` returns another mapping only when a credential has changed."""
        self._key = key
        self._credentials = credentials
        self._counted: Mapping[ScramUser, ScramCredential] | None = None
        self._shapes: Mapping[int, _Weighted] = {}

    def make(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramCredential:
        """Returns the same for the same name, until other users come or go. Its password is not known to anyone."""
        shape = OF_TOKENS if is_token else self._draw_shape(mechanism, name)
        drawn = self._drawn(f"credential,{mechanism.name},{is_token},{shape},{name}")
        return ScramCredential(
            salt=_salt(shape, drawn), stored_key=mechanism.hash(drawn), server_key=b"", iterations=shape.iterations
        )

    def _draw_shape(self, mechanism: ScramMechanism, name: str) -> Shape:
        credentials = self._credentials()
        if credentials is not self._counted:
            self._shapes = shapes_of(credentials)
            self._counted = credentials
        weighted = self._shapes.get(mechanism.number, ((OF_KAFKA, 1),))
        if len(weighted) == 1:
            return weighted[0][0]
        return min(weighted, key=lambda one: self._score(f"shape,{mechanism.name},{one[0]},{name}", one[1]))[0]

    def _score(self, what: str, weight: int) -> float:
        """The least of independent exponential variables is that of each with a chance in proportion to its rate."""
        fraction = (int.from_bytes(self._drawn(what)[:6]) + 1) / 2**48
        return -math.log(fraction) / weight

    def _drawn(self, what: str) -> bytes:
        return hmac.digest(self._key, what.encode(), "sha512")


def shapes_of(credentials: Mapping[ScramUser, ScramCredential]) -> Mapping[int, _Weighted]:
    """By the numbers of mechanisms, the shapes of their credentials and how often they occur."""
    counted: dict[int, Counter[Shape]] = {}
    for user, credential in credentials.items():
        counted.setdefault(user.mechanism, Counter())[_shape(credential)] += 1
    return {mechanism: _most_frequent(counter.items()) for mechanism, counter in counted.items()}


def _most_frequent(shapes: Iterable[tuple[Shape, int]]) -> _Weighted:
    return tuple(sorted(shapes, key=lambda one: (-one[1], one[0]))[:SHAPES_MAX])


def _shape(credential: ScramCredential) -> Shape:
    salt = credential.salt
    is_number = bool(salt) and not salt.translate(None, _LETTERS)
    return Shape(credential.iterations, min(len(salt), SALT_BYTES_MAX), is_number)


def _salt(shape: Shape, drawn: bytes) -> bytes:
    count = shape.salt_bytes
    stream = hashlib.shake_256(drawn).digest(count + _SPARE_BYTES)
    return _number(count, stream) if shape.is_number else stream[:count]


def _number(letter_count: int, stream: bytes) -> bytes:
    """A salt as Kafka's clients would draw it, given its length."""
    base = len(_LETTERS)
    least, end = base ** (letter_count - 1), base**letter_count
    if least < _KAFKA_SALTS:
        end = min(end, _KAFKA_SALTS)
    number = least + int.from_bytes(stream) % (end - least)
    letters = bytearray()
    while number:
        number, digit = divmod(number, base)
        letters.append(_LETTERS[digit])
    return bytes(reversed(letters))
