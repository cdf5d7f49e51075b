"""The server under the pages."""

from threading import BoundedSemaphore

from sections.limits import MAX_AT_ONCE

TURNS = BoundedSemaphore(MAX_AT_ONCE)
"""Held while a whole page is made. Others wait, and are done sooner for it: Python runs one thread at a time, and a hundred
that take turns every 5 ms leave none to send what is ready."""
