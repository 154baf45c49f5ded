"""The table `code_usage_days`."""

from datetime import date

from soundmark.kit.postgres.transaction import AnyTx
from soundmark.kit.text.months import Month


async def count_issued(tx: AnyTx, organization_id: str, month: Month) -> int:
    """Return how many Codes the organisation issued in a month."""
    count: int = await tx.value(
        """
        SELECT COALESCE(sum(issued_count), 0)::bigint
          FROM code_usage_days
         WHERE organization_id = %(organization_id)s
           AND day >= %(first_day)s
           AND day < %(next_first_day)s
        """,
        {
            "organization_id": organization_id,
            "first_day": month.first_day,
            "next_first_day": month.next_first_day,
        },
    )
    return count


async def insert_or_add(tx: AnyTx, organization_id: str, day: date, count: int) -> None:
    """Add `count` to the Codes issued on `day`."""
    await tx.run(
        """
        INSERT INTO code_usage_days AS days (organization_id, day, issued_count)
        VALUES (%(organization_id)s, %(day)s, %(count)s)
            ON CONFLICT (organization_id, day) DO UPDATE SET issued_count = days.issued_count + EXCLUDED.issued_count
        """,
        {"organization_id": organization_id, "day": day, "count": count},
    )
