"""The server under the pages."""

import gc
from contextlib import suppress
from functools import cache
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SOCK_STREAM, TCP_NODELAY, socket
from threading import BoundedSemaphore

from sections.limits import MAX_AT_ONCE

TURNS = BoundedSemaphore(MAX_AT_ONCE)
"""Held while a whole page is made. Others wait, and are done sooner for it: Python runs one thread at a time, and a hundred
that take turns every 5 ms leave none to send what is ready."""


@cache
def answer_at_once() -> None:
    """Sends every message when it is written, on open connections and on all that come.

    Streamlit opens its port in a way in which asyncio does not see that it is TCP, and so leaves TCP's own waiting
    on: part of most answers waits 40 ms for the browser to confirm what came before.
    """
    for one in gc.get_objects():
        if type(one) is socket and one.fileno() >= 0 and one.family in (AF_INET, AF_INET6) and one.type == SOCK_STREAM:
            with suppress(OSError):  # its other end has left
                one.setsockopt(IPPROTO_TCP, TCP_NODELAY, True)  # what a port accepts inherits it
