"""The server under the pages."""

from threading import Lock

TURN = Lock()
"""Held while a page is made. Others wait, and are done sooner for it: Python runs one thread at a time, and a hundred that
change places every 5 ms hinder each other and leave none to send what is ready."""
