"""The tools with which a station or a venue brings Codes to air. They call Core's API and know no database."""
