"""The hosts to which the intents of a project may lead."""
