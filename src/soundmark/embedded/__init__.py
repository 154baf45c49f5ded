"""A PostgreSQL server on this machine: from a wheel or installed, its clusters, dumps and backups."""
