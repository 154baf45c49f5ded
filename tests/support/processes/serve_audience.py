"""Serve Audience in its own process, which a test may kill: `python serve_audience.py PORT`."""

import os
import sys

from soundmark import settings as declared
from soundmark.audience.app import create_app
from soundmark.kit import log
from soundmark.kit.http.server.serve import Listen, run

if __name__ == "__main__":
    settings = declared.read(declared.AudienceSettings, os.environ)
    log.configure(level=settings.log_level, log_format=settings.log_format, component="audience")
    run(create_app(settings), Listen("127.0.0.1", int(sys.argv[1])))
