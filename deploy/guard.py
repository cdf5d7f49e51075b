"""What every answer of a public host must carry, and what no visitor may do, whatever stands in front of the process."""

import os
from collections.abc import Mapping
from time import monotonic

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

CLOSED = ("/_stcore/metrics", "/_stcore/agent")
"""What Streamlit answers besides the app, and strangers have no use for."""
UPLOADS = "/_stcore/upload_file/"
FRAMES = os.environ.get("LAB_FRAME_ANCESTORS", "'self'")
"""Who may show the site in a frame, as in a Content-Security-Policy."""
OWN = "'sha256-THxz9J9+wf7rhwR2YkXJoSZ13UCmYyC+3lNDv2+8ugA='"
"""The one script Streamlit 1.67 writes into its page itself, a word to crawlers."""
POLICY = (
    f"default-src 'self'; script-src 'self' blob: {OWN}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; frame-src 'self' blob: data:; "
    f"object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors {FRAMES}"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",  # what was typed stands in the address
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
MESSAGES, PER_SECOND = 100, 20
"""What one page may send at once and then each second: more than the quickest hand on a slider."""
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """Puts `HEADERS` on every answer, closes `CLOSED`, turns away pages of other sites and hangs up on floods.

    An upload for a session of another replica becomes a 404, at which the proxy asks that one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if _foreign(dict(scope["headers"])):
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.app(scope, _paced(receive), send)
            return
        path = scope.get("path", "")

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                strange = message["status"] == 400 and path.startswith(UPLOADS)
                message |= {"headers": [*message["headers"], *_HEADERS], "status": 404 if strange else message["status"]}
            await send(message)

        app = PlainTextResponse("Not found", 404) if path.startswith(CLOSED) else self.app
        await app(scope, receive, guarded)


def _foreign(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page of another site asks. Streamlit would refuse it too, but first ask outside for this machine's address."""
    origin = headers.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != headers.get(b"host")


def _paced(receive: Receive) -> Receive:
    """What a page sends, but for its wish to empty the cache of everybody; the end, if it sends too much."""
    left, last = float(MESSAGES), monotonic()

    async def paced() -> Message:
        nonlocal left, last
        message = await receive()
        while BackMsg.FromString(message.get("bytes") or b"").clear_cache:
            message = await receive()
        now = monotonic()
        left, last = min(left + (now - last) * PER_SECOND, MESSAGES) - 1, now
        return message if left > 0 else {"type": "websocket.disconnect", "code": 1008}

    return paced
