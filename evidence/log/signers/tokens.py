"""Token signer: signing keys in a PKCS#11 token, such as a hardware security module or SoftHSM, which they never leave.

Which token is said by a PKCS#11 URI (RFC 7512). A key's two halves are objects of their own, since a token gives no seed to derive
a clock from: ``k1`` and ``k1/clock``, behind the URI's ``object`` where there is one (``hub/k1``). The clock is made first, so a
name counts once its log key is there.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

import pkcs11
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass
from pkcs11.exceptions import PKCS11Error
from pkcs11.util.ec import encode_named_curve_parameters

from evidence.log.signers.base import FIRST, LogPublicKey, check_that_it_signs, key_number, newest_first, next_name
from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOST = (
    "Look whether the token is there and has its keys; a backup of the token's maker brings them back. If they are lost for good, "
    "`manage.py rotate_log_key --lost` begins with a new key, and everybody who verifies must be told of it."
)
SAY_IT = (
    "Set TOOLHUB_SIGNING_PKCS11_URI to a URI such as pkcs11:token=toolhub?module-path=/usr/lib/softhsm/libsofthsm2.so"
    "&pin-source=file:/run/secrets/signing-pin (docs/how-to/keep-signing-keys-in-a-token.md)."
)
_CURVE = "1.3.101.112"  # Ed25519, RFC 8410
_KEY_BYTES = 32
_CLOCK = "/clock"
_PATH = {"token", "serial", "slot-id", "object"}
_QUERY = {"module-path", "pin-source"}


@dataclass(frozen=True, slots=True)
class TokenAddress:
    """What a PKCS#11 URI says. ``pin_source``: a file, which is read when the token is opened."""

    module: str
    pin_source: Path
    token: str = ""
    serial: str = ""
    slot: int | None = None
    prefix: str = ""

    @classmethod
    def parse(cls, uri: str) -> TokenAddress:
        """Raises :class:`KeyUnavailable` for one that names no token, or says what this hub does not know."""
        scheme, _, rest = uri.partition(":")
        path, _, query = rest.partition("?")
        pairs = [part.partition("=") for part in path.split(";") if part]
        said = {name: unquote(value) for name, _, value in pairs}
        asked = dict(parse_qsl(query, keep_blank_values=True))
        wrong = [*(said.keys() - _PATH), *(asked.keys() - _QUERY)]
        source = asked.get("pin-source", "")
        if scheme != "pkcs11":
            raise KeyUnavailable("The address of the signing token is no pkcs11: URI.", remedy=SAY_IT)
        if wrong:
            raise KeyUnavailable(
                f"The address of the signing token says {', '.join(sorted(wrong))}, which is not known here.",
                remedy=SAY_IT,
            )
        if not (
            said.keys() & {"token", "serial", "slot-id"}
            and "module-path" in asked
            and source.startswith(("/", "file:"))
        ):
            raise KeyUnavailable(
                "The address of the signing token does not name token, module-path and a pin-source that is a file.",
                remedy=SAY_IT,
            )
        slot = said.get("slot-id", "")
        if slot and not slot.isdigit():
            raise KeyUnavailable("The slot-id of the signing token is no number.", remedy=SAY_IT)
        return cls(
            module=asked["module-path"],
            pin_source=Path(source.removeprefix("file:").replace("///", "/", 1)),
            token=said.get("token", ""),
            serial=said.get("serial", ""),
            slot=int(slot) if slot else None,
            prefix=f"{said['object']}/" if said.get("object") else "",
        )


class TokenSigner:
    """One session at a time, opened when it is needed and again after the token was away."""

    def __init__(self, uri: str) -> None:
        self.address = TokenAddress.parse(uri)
        self.place = f"the token {self.address.token or self.address.serial or self.address.slot}"
        self.lost = LOST
        self._lock = threading.RLock()
        self._session: pkcs11.Session | None = None
        self._checked: set[LogPublicKey] = set()

    def list_keys(self) -> list[LogPublicKey]:
        with self._opened() as session:
            publics = self._find(session, ObjectClass.PUBLIC_KEY)
            whole = (
                publics.keys() & self._find(session, ObjectClass.PRIVATE_KEY).keys()
            )  # others were half made, or half destroyed
            found = [
                LogPublicKey(name, _raw(publics[name]), _raw(publics[name + _CLOCK]))
                for name in newest_first(name for name in whole if key_number(name))
                if name + _CLOCK in whole
            ]
        for key in found:
            if key not in self._checked:
                check_that_it_signs(self, key)
                self._checked.add(key)
        return found

    def sign(self, message: bytes, *, key: str, clock: bool = False) -> bytes:
        with self._opened() as session:
            private = self._find(session, ObjectClass.PRIVATE_KEY, only=key + (_CLOCK if clock else "")).popitem()[1]
            return bytes(private.sign(message, mechanism=Mechanism.EDDSA))

    def has_keys(self) -> bool:
        with self._opened() as session:
            return any(key_number(name) for name in self._find(session, ObjectClass.PRIVATE_KEY))

    def make_first_key(self, name: str = FIRST) -> None:
        with self._opened() as session:
            for left in self._left_over(session):
                left.destroy()
            for label in (name + _CLOCK, name):
                _make_pair(session, self.address.prefix + label)

    def add_key(self) -> str:
        with self._opened() as session:
            name = next_name(self._find(session, ObjectClass.PRIVATE_KEY))
        self.make_first_key(name)
        return name

    def forget_keys(self, names: Iterable[str]) -> None:
        with self._opened() as session:
            privates = self._find(session, ObjectClass.PRIVATE_KEY)
            publics = self._find(session, ObjectClass.PUBLIC_KEY)
            current = newest_first(name for name in privates if key_number(name))[:1]
            for name in set(names) - set(current):
                for objects in (privates, publics):  # a name whose private log key is gone counts no more
                    for label in (name, name + _CLOCK):
                        if label in objects:
                            objects[label].destroy()

    def _find(self, session: pkcs11.Session, kind: ObjectClass, *, only: str = "") -> dict[str, Any]:
        """Keys by label without prefix. Raises :class:`KeyUnavailable` for two of one label, and where ``only`` is missing."""
        sought: dict[Attribute, Any] = {Attribute.CLASS: kind, Attribute.KEY_TYPE: KeyType.EC_EDWARDS}
        if only:
            sought[Attribute.LABEL] = self.address.prefix + only
        found: dict[str, Any] = {}
        pattern = re.compile(re.escape(self.address.prefix) + r"(k[1-9]\d{0,8}(?:/clock)?)")
        for each in session.get_objects(sought):
            named = pattern.fullmatch(each[Attribute.LABEL])
            if named is None:
                continue
            if named[1] in found:
                raise KeyUnavailable(
                    f"In {self.place} are two signing keys {named[1]}, and nobody can say which one signs.",
                    remedy="Remove the one that was never published (`manage.py doctor` tells what is published).",
                )
            found[named[1]] = each
        if only and only not in found:
            raise KeyUnavailable(f"The signing key {only} is not in {self.place}.", remedy=self.lost)
        return found

    def _left_over(self, session: pkcs11.Session) -> list[Any]:
        """Of a key whose making was cut off: a clock without its log key."""
        kinds = [self._find(session, kind) for kind in (ObjectClass.PRIVATE_KEY, ObjectClass.PUBLIC_KEY)]
        whole = {name for name in kinds[0] if key_number(name)}
        return [each for objects in kinds for label, each in objects.items() if label.removesuffix(_CLOCK) not in whole]

    @contextmanager
    def _opened(self) -> Iterator[pkcs11.Session]:
        """The session; one that failed is not used again."""
        with self._lock:
            try:
                if self._session is None:
                    self._session = self._open()
                yield self._session
            except PKCS11Error as error:
                self.close()
                raise KeyUnavailable(
                    f"The signing {self.place.removeprefix('the ')} does not answer as it should: {type(error).__name__}.",
                    remedy=self.lost,
                ) from error

    def close(self) -> None:
        """End the session, and with it the login of this process."""
        with self._lock:
            session, self._session, self._checked = self._session, None, set()
            if session is not None:
                with suppress(PKCS11Error):  # of a token that is away
                    session.close()

    def _open(self) -> pkcs11.Session:
        at = self.address
        if not Path(at.module).is_file():
            raise KeyUnavailable(f"There is no PKCS#11 module {at.module}.", remedy=SAY_IT)
        try:
            pin = at.pin_source.read_text().strip()
        except OSError as error:
            raise KeyUnavailable(
                f"The PIN of the signing token cannot be read from {at.pin_source}.", remedy=SAY_IT
            ) from error
        library = pkcs11.lib(at.module)
        tokens = [
            token
            for slot in library.get_slots(token_present=True)
            for token in [slot.get_token()]
            if (not at.token or token.label == at.token)
            and (not at.serial or token.serial.decode() == at.serial)
            and at.slot in (None, slot.slot_id)
        ]
        if len(tokens) != 1:
            raise KeyUnavailable(
                f"The module {at.module} has {len(tokens) or 'no'} tokens that TOOLHUB_SIGNING_PKCS11_URI could mean.",
                remedy=SAY_IT,
            )
        return tokens[0].open(rw=True, user_pin=pin)


def _make_pair(session: pkcs11.Session, label: str) -> None:
    curve = {Attribute.EC_PARAMS: encode_named_curve_parameters(_CURVE)}
    parameters = session.create_domain_parameters(KeyType.EC_EDWARDS, curve, local=True)
    parameters.generate_keypair(
        mechanism=Mechanism.EC_EDWARDS_KEY_PAIR_GEN,
        store=True,
        label=label,
        private_template={Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False},
    )


def _raw(public: Any) -> bytes:
    """Its 32 bytes: some tokens give them within an OCTET STRING, some bare."""
    return bytes(public[Attribute.EC_POINT])[-_KEY_BYTES:]
