"""A card provider that has every subscription that it is asked about, paid and active.

Run as `python -m bench.card_server PORT`. The subscription `sub_bench_N` is of the checkout with that number.
"""

import json
import sys
import time
from typing import Any, Final

import uvicorn

from bench import purchases

_PATH: Final = "/v1/subscriptions/"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer with a subscription."""
    if scope["type"] != "http":
        message = await receive()
        while message["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
            message = await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    assert scope["path"].startswith(_PATH), "nothing else is asked"
    body = json.dumps(purchases.subscription_of(int(scope["path"].rpartition("_")[2]), int(time.time()))).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_config=None, access_log=False)
