"""An implementation of logs and witnesses by others (requirements/verifiers.txt), which judges ours."""

import importlib
import sys
from pathlib import Path
from typing import Any, Final

VERIFIERS: Final = Path(__file__).parents[3] / ".venv" / "verifiers"


def _load(name: str) -> Any:
    sys.path.insert(0, str(VERIFIERS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(VERIFIERS))


# `make verifiers` installs them, as part of `make test`.
tlog: Final = _load("aics_tlog")
witness: Final = _load("aics_witness")
