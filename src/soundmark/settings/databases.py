"""The rule that Core and Audience share neither a database nor a role."""

from urllib.parse import urlsplit

from soundmark.kit.crypto.secret import Secret
from soundmark.settings.fields import servers_of


def require_separate_databases(core: Secret | None, audience: Secret | None) -> None:
    """Require two databases and two roles, where both URLs are known.

    Raises: ValueError.
    """
    if core is None or audience is None:
        return
    one, other = urlsplit(core.reveal()), urlsplit(audience.reveal())
    if set(servers_of(one.netloc)) & set(servers_of(other.netloc)) and (
        one.path == other.path or one.username == other.username
    ):
        raise ValueError(
            "SOUNDMARK_CORE_DATABASE_URL and SOUNDMARK_AUDIENCE_DATABASE_URL must name two databases and two roles"
        )
