"""What every page takes from the process."""

from dataclasses import dataclass
from pathlib import Path

from soundmark.console.core_api import CoreApi
from soundmark.console.directory import Directory
from soundmark.console.disk_slots import DiskSlots
from soundmark.console.sealed_cookies import CookieJar
from soundmark.console.session import Sessions
from soundmark.console.sign_in.context import SignIn
from soundmark.console.sign_in.kept_forms import KeptForms
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.requests.client_address import AddressReader


@dataclass(frozen=True, slots=True)
class Addresses:
    """The public addresses: of the console, and of Core as browsers reach it."""

    console: str
    core: str


@dataclass(frozen=True, slots=True)
class Publisher:
    """The publisher to which the listening page reports, and the integration whose Codes it counts."""

    url: str
    integration_id: str


@dataclass(frozen=True, slots=True)
class Console:
    """The parts of the console that all requests share.

    People sign in at an identity provider. Without one, only the operator signs in, with a ticket from the folder
    `tickets`, on this machine and through no proxy. So at least one of `sign_in` and `operator_token` is None.
    """

    addresses: Addresses
    publisher: Publisher | None
    tickets: Path | None
    proxies: AddressReader
    core: CoreApi
    jar: CookieJar
    sessions: Sessions
    directory: Directory
    clock: Clock
    entropy: Entropy
    operator_token: Secret | None
    sign_in: SignIn | None
    kept_forms: KeptForms
    disk_slots: DiskSlots
