"""The mail server from the platform settings."""

from dataclasses import dataclass

from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.kit.crypto.secret import Secret
from soundmark.settings.registry import MailServerSettings, MailSettings


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """The mail server to send through, and the sender of its mails."""

    host: str
    port: int
    is_implicit_tls: bool
    from_email: str
    from_name: str
    username: Secret | None
    password: Secret | None


async def find_smtp_server(settings: PlatformSettings) -> SmtpServer | None:
    """Return the mail server; None if no host or no sender address is configured.

    Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken if the login was sealed under another master key.
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
    """Return whether a mail server and a sender address are configured, without unsealing a credential.

    Raises: DatabaseUnavailable.
    """
    mail = await settings.read(MailServerSettings)
    return mail.smtp_host is not None and mail.smtp_from_email is not None
