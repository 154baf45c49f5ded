"""The stand-in of the accounting system: the REST API of Dolibarr."""
