"""Issue the Code of tonight's show, and put its sound into the folder from which a station plays.

Run it as often as you like: there is one Code for each show, and one file. It needs `soundmark-sdk`.
"""

import argparse
import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from soundmark_sdk.client import ApiProblem, Client, ClientFailure, FileRecoveryStore, Intent, IssueRequest


def main() -> int:
    """Return the exit status: 0 when the sound is in the folder."""
    options = read_options()
    options.folder.mkdir(parents=True, exist_ok=True)
    sound = options.folder / f"soundmark-{options.show}.wav"
    if sound.exists():
        print(f"{sound} is there already")
        return 0
    key = options.key_file.read_text().strip()
    try:
        with (
            FileRecoveryStore(options.folder / ".soundmark-recovery") as recovery,
            Client(options.service, key, recovery=recovery) as client,
        ):
            put_sound(client, options, sound)
    except ApiProblem as problem:
        print(f"the service refused: {problem.code}", file=sys.stderr)
        return 1
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
        expires_at=begins_at + options.ends_in,
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
    parser.add_argument("--begins", type=parse_time, default=parse_time("20:00"), help="when it begins (UTC)")
    parser.add_argument("--ends-in", type=parse_hours, default=timedelta(hours=4), help="how long it is valid, as 4h")
    return parser.parse_args()


def parse_time(text: str) -> time:
    """Return a time of the day, such as 20:00."""
    return time.fromisoformat(text)


def parse_hours(text: str) -> timedelta:
    """Return hours, such as 4h."""
    return timedelta(hours=int(text.removesuffix("h")))


if __name__ == "__main__":
    sys.exit(main())
