"""Where the files of soundmark-receiver are, which browsers load from the console."""

from pathlib import Path
from typing import Final

_IN_PACKAGE: Final = Path(__file__).parent / "static" / "receiver"
_IN_REPOSITORY: Final = Path(__file__).parents[3] / "sdk" / "js" / "src"


def receiver_folder() -> Path:
    """Return the folder of the modules: in the installed package, or in the repository of an editable checkout.

    Raises: FileNotFoundError when neither exists, so that a broken installation does not start.
    """
    for folder in (_IN_PACKAGE, _IN_REPOSITORY):
        if (folder / "index.js").is_file():
            return folder
    raise FileNotFoundError(f"soundmark-receiver is missing: neither {_IN_PACKAGE} nor {_IN_REPOSITORY} holds it.")
