"""How often the local provider is asked about payments, and how that is shared out."""

from typing import Literal, TypeAlias

# Who asks: a notification, which anybody can send, or a job that heals what was lost.
VerificationShare: TypeAlias = Literal["public", "jobs"]


def limit_of_share(per_minute: int, share: VerificationShare) -> int:
    """Return how often a share may ask in a minute, of `per_minute` in all: two thirds for the public, one for jobs.

    Source: contract, section 7, "Answers of the two webhooks".
    """
    return max(1, 2 * per_minute // 3) if share == "public" else max(1, per_minute // 3)


def limit_of_address(per_minute: int) -> int:
    """Return how often notifications from one address may ask in a minute: one third of `per_minute`."""
    return max(1, per_minute // 3)
