"""The mail server that the platform settings name."""

from dataclasses import dataclass

from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.kit.crypto.secret import Secret
from soundmark.settings.registry import MailServerSettings, MailSettings


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """The mail server to send through, and the sender that it is given."""

    host: str
    port: int
    is_implicit_tls: bool
    from_email: str
    from_name: str
    username: Secret | None
    password: Secret | None


async def find_smtp_server(settings: PlatformSettings) -> SmtpServer | None:
    """Return the mail server; None where no host, or no address to send from, is configured.

    Raises: DatabaseUnavailable; kit.sealing.SealBroken where the login was sealed under another master key.
    """
    mail = await settings.read(MailSettings)
    if mail.smtp_host is None or mail.smtp_from_email is None:
        return None
    return SmtpServer(
        host=mail.smtp_host,
        port=mail.smtp_port,
        is_implicit_tls=mail.smtp_secure,
        from_email=mail.smtp_from_email,
        from_name=mail.smtp_from_name,
        username=mail.smtp_username,
        password=mail.smtp_password,
    )


async def has_smtp_server(settings: PlatformSettings) -> bool:
    """Return whether a mail server and an address to send from are configured. No credential is opened for it.

    Raises: DatabaseUnavailable.
    """
    mail = await settings.read(MailServerSettings)
    return mail.smtp_host is not None and mail.smtp_from_email is not None
