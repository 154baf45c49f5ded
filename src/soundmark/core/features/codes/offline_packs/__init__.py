"""Offline packs: the active Codes of a campaign or a project, signed for receivers without a network."""
