"""Audience in a process of its own, which a test may kill: `python -m serve_audience PORT`, set by the environment."""

import os
import sys

from soundmark import settings as declared
from soundmark.audience.app import create_app
from soundmark.kit import log
from soundmark.kit.serve import Listen, run

if __name__ == "__main__":
    log.configure(level="warning", log_format="json", component="audience")
    settings = declared.read(declared.AudienceSettings, os.environ)
    run(create_app(settings), Listen("127.0.0.1", int(sys.argv[1])))
