"""The limits of measurement that Core publishes and Audience enforces.

Source: API v1, "Limits".
"""

from typing import Final

RETENTION_DAYS_MAX: Final = 730
DEMO_RETENTION_DAYS_MAX: Final = 14
DEMO_EVENTS_MAX: Final = 100  # A month.
