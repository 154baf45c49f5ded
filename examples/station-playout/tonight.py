"""Issue the Code of tonight's show, and put its sound into the folder from which a station plays.

Run it as often as you like: there is one Code for each show, and one file. It needs `soundmark-sdk`.
"""

import argparse
import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from soundmark_sdk.client import Client, ClientFailure, FileRecoveryStore, Intent, IssueRequest


def main() -> int:
    """Return the exit status: 0 when the sound is in the folder."""
    options = read_options()
    sound = options.folder / f"soundmark-{options.show}.wav"
    if sound.exists():
        print(f"{sound} is there already")
        return 0
    try:
        key = options.key_file.read_text().strip()
        options.folder.mkdir(parents=True, exist_ok=True)
        with (
            FileRecoveryStore(options.folder / ".soundmark-recovery") as recovery,
            Client(options.service, key, recovery=recovery) as client,
        ):
            put_sound(client, options, sound)
    except (ClientFailure, OSError, ValueError) as failure:
        # The next run asks for the same Code again, so nothing is issued twice.
        print(failure, file=sys.stderr)
        return 1
    print(f"{sound} is ready")
    return 0


def put_sound(client: Client, options: argparse.Namespace, sound: Path) -> None:
    """Issue the show's Code, or get it again, and write its sound beside the others."""
    # The whole second that the show ends at, so that a second run asks for exactly the same.
    begins_at = datetime.combine(options.show, options.begins, tzinfo=UTC)
    request = IssueRequest(
        issuer=options.issuer,
        expires_at=begins_at + timedelta(hours=options.hours),
        intent=Intent("link", "open", {"url": options.url}),
        campaign_id=options.campaign,
    )
    code = client.codes.issue(request, idempotency_key=f"tonight.{options.show}.{begins_at:%H%M}")
    # An automation that watches the folder must not see half a file, and takes no name that begins with a dot.
    part = sound.with_name(f".{sound.name}.part")
    with part.open("wb") as file:
        client.codes.wav(code.xr_id, file)
    part.replace(sound)
    print(f"{code.xr_id} is valid until {code.expires_at:%Y-%m-%d %H:%M} UTC")


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    now = datetime.now(UTC)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the playout folder")
    parser.add_argument("--service", required=True, help="the address of the service")
    parser.add_argument("--key-file", required=True, type=Path, help="the file with the API key")
    parser.add_argument("--issuer", required=True, help="the name of the station")
    parser.add_argument("--url", required=True, help="what the Code opens")
    parser.add_argument("--campaign", help="the id of the show's campaign")
    parser.add_argument("--show", type=date.fromisoformat, default=now.date(), help="the day of the show (UTC)")
    parser.add_argument("--begins", type=time.fromisoformat, default=time(20), help="when it begins (UTC), as 20:00")
    parser.add_argument("--hours", type=float, default=4, help="how long the Code is valid from then on")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
