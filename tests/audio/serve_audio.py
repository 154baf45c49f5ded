"""The audio component as in production, on the given ports, for the tests of its HTTP."""

import os
import sys

from soundmark.audio.app import create_app
from soundmark.kit import log
from soundmark.kit.http.server import serve
from soundmark.settings import AudioSettings, read

if __name__ == "__main__":
    port, metrics_port = map(int, sys.argv[1:])
    log.configure(level="debug", log_format="json", component="audio")
    serve.run(create_app(read(AudioSettings, os.environ)), serve.Listen("127.0.0.1", port, metrics_port))
