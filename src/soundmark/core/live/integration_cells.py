"""The cells of integrations, for events, which name no organisation."""

from typing import Final

from soundmark.core.store.audience import cells
from soundmark.kit.postgres.database import Database

_KEPT_MAX: Final = 65_536  # Integrations: some 10 MB.


class IntegrationCells:
    """Finds the cell of an integration, which never changes, so it is read from the database once."""

    def __init__(self, db: Database) -> None:
        self._db: Final = db
        self._kept: Final[dict[str, str]] = {}

    async def find(self, integration_id: str) -> str | None:
        """Return the name of the integration's cell; None for an unknown integration, which is never kept.

        Raises: DatabaseUnavailable.
        """
        cell = self._kept.get(integration_id)
        if cell is None:
            cell = await cells.find_of_integration(self._db, integration_id)
            if cell is not None:
                if len(self._kept) >= _KEPT_MAX:
                    self._kept.clear()
                self._kept[integration_id] = cell
        return cell
