"""The support desk from the platform settings."""

from dataclasses import dataclass

from soundmark.kit.crypto.secret import Secret
from soundmark.settings.registry import SupportSettings


@dataclass(frozen=True, slots=True)
class DeskServer:
    """The desk's address, our credential, and the mailbox that receives new tickets."""

    url: str
    api_key: Secret
    mailbox_id: int


def find_desk_server(settings: SupportSettings) -> DeskServer | None:
    """Return the support desk; None if its URL, its key or its mailbox is not configured."""
    url, key, mailbox_id = settings.support_desk_base_url, settings.support_api_key, settings.support_desk_mailbox_id
    if url is None or key is None or mailbox_id is None:
        return None
    return DeskServer(f"{url}/api", key, mailbox_id)
