"""Can strangers lean on the hosted app? A hundred at once, on one process and on two with one killed.

    python -m benchmarks.hosting

Each visitor has a tab open on the main page, with a text nobody else has, and every `PAUSE` seconds changes what its habit
says: another token, which runs little again; another head or another text, which make all views anew; another number of
heads, which runs the choices too. A time is from there to the last message of the run. Visitors are no browsers (visitors.py):
nothing is drawn, and they share the machine with the server. Behind the proxy they pick, and every third time download, which
must give a whole archive; a visitor whose replica dies opens the same address again, as a browser does, and must find the same
text there.
Loopback only. Exits with 1 if a bound is missed.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path
from statistics import quantiles

from websockets.exceptions import WebSocketException

from benchmarks.visitors import Failed, Visitor
from deploy.supervisor import HEALTH, answers, replica

ROOT = Path(__file__).parents[1]
CROWD, SECONDS, PAUSE = 100, 60, 3.0
PORT = 8710
AFTERWARDS = 5
"""Seconds a session outlives its tab here; and after a death, the seconds in which a visit may fail."""
HABITS = {
    "tokens picked": ["query"],
    "tokens, heads, texts": ["query", "query", "head", "query", "query", "heads", "query", "query", "query", "text"],
    "texts typed": ["text"],
}
"""What visitors change, one thing after the other. In the last nobody looks at what was typed: every change makes all views anew."""
WORDS = ["attention", "lets", "every", "token", "take", "a", "share", "of", "any", "other", "and", "nobody", "waits"]


@dataclass
class Tally:
    """What happened: the seconds each run took, how many downloads came whole, and when what went wrong."""

    times: list[float] = field(default_factory=list)
    downloads: int = 0
    wrong: list[tuple[float, str]] = field(default_factory=list)

    def share(self, percent: int) -> float:
        """The time, in ms, that this share of the runs did not exceed."""
        return 1000 * quantiles(self.times, n=100, method="inclusive")[percent - 1]

    def late(self, moment: float) -> list[str]:
        """What went wrong after a moment."""
        return [what for when, what in self.wrong if when > moment]


async def arrive(address: str, count: int) -> list[Visitor]:
    """Visitors with an open page, who came one after the other."""
    visitors = [Visitor(address, text=_text(number, 0), source="random") for number in range(count)]
    for visitor in visitors:
        await visitor.open()
        _expect(visitor)
    return visitors


async def stay(visitors: list[Visitor], seconds: float, habit: list[str], *, downloads: bool = False) -> Tally:
    """Visitors do what their habit says, each at a moment of its own, and leave together."""
    tally, start = Tally(), time.monotonic()

    async def one(number: int, visitor: Visitor) -> None:
        await asyncio.sleep(PAUSE * number / len(visitors))
        await _stay(visitor, number, start + seconds, tally, habit, downloads)

    await asyncio.gather(*(one(*each) for each in enumerate(visitors)))
    return tally


async def _stay(visitor: Visitor, number: int, end: float, tally: Tally, habit: list[str], downloads: bool) -> None:
    turn = 0
    while time.monotonic() < end:
        try:
            if visitor.socket is None:
                await visitor.open()
                _expect(visitor)
            start, turn = time.monotonic(), turn + 1
            what = habit[(number + turn) % len(habit)]
            await visitor.change(what, _another(what, number, turn))
            tally.times.append(time.monotonic() - start)
            _expect(visitor)
            if downloads and turn % 3 == 0:
                zipfile.ZipFile(BytesIO(await visitor.download())).testzip()
                tally.downloads += 1
            await asyncio.sleep(max(0.0, start + PAUSE - time.monotonic()))
        except (Failed, OSError, WebSocketException, zipfile.BadZipFile) as problem:  # TimeoutError is an OSError
            tally.wrong.append((time.monotonic(), f"{type(problem).__name__}: {problem}"))
            await visitor.close()
            await asyncio.sleep(0.5)
    await visitor.close()


def _another(what: str, number: int, turn: int) -> str | int:
    """What it is changed to: never what it is."""
    counts = {"query": 1 + turn % 8, "head": 1 + turn // 10 % 2, "heads": 2 << turn // 10 % 2}
    return _text(number, turn) if what == "text" else counts[what]


def _text(number: int, turn: int) -> str:
    """Eight words, another for every visitor and turn."""
    return " ".join([*(WORDS[(number + turn + n) % len(WORDS)] for n in range(6)), f"v{number}", f"t{turn}"])


def _expect(visitor: Visitor) -> None:
    """Both words of the text that no other visitor and no other turn has."""
    for word in visitor.choices["text"].split()[-2:]:
        if word not in visitor.tokens or word not in visitor.walked:
            raise Failed(f"the page does not show “{word}”, which was typed")


@contextmanager
def one_process(port: int) -> Iterator[tuple[str, int]]:
    """The hosted app without a proxy: address and process id."""
    os.environ["STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL"] = str(AFTERWARDS)
    service = replica("one process", port)
    service.start()
    try:
        _until(lambda: answers(service.health), f"no answer at {service.health}")
        yield service.health.removesuffix(HEALTH), service.process.pid
    finally:
        service.stop(signal.SIGTERM)


@contextmanager
def behind_proxy(port: int) -> Iterator[tuple[str, Iterator[tuple[str, int]]]]:
    """`python -m deploy`: the address of the proxy, and what is said to answer there, by name and process id."""
    command = [sys.executable, "-u", "-m", "deploy", f"--port={port}"]
    deployed = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    found = (re.match(r"(.+) answers at .*, process (\d+)", line) for line in deployed.stdout)
    try:
        yield f"http://127.0.0.1:{port}", ((said[1], int(said[2])) for said in found if said)
    finally:
        deployed.terminate()
        deployed.communicate(timeout=30)


def megabytes(process: int, kind: str = "VmRSS") -> float:
    """Of memory a process has now, or of another kind the kernel counts. Linux only."""
    return int(re.search(rf"{kind}:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1]) / 1024


async def on_one_process(count: int, seconds: float, port: int, habit: list[str]) -> tuple[Tally, list[float]]:
    """What happened to the visitors, and the memory before them, with all of them there, and after they left."""
    with one_process(port) as (address, process):
        await stay(await arrive(address, 1), 0, [])  # what the first visitor loads stays for all
        before = megabytes(process)
        visitors = await arrive(address, count)
        visit = asyncio.create_task(stay(visitors, seconds, habit))
        await asyncio.sleep(0.9 * seconds)
        during = megabytes(process)
        tally = await visit
        await asyncio.sleep(AFTERWARDS + 1)
        await stay(await arrive(address, 1), 0, [])  # Streamlit lets go of those who left when somebody comes
        return tally, [before, during, megabytes(process)]


async def with_a_death(count: int, seconds: float, port: int) -> tuple[Tally, float]:
    """What happened to the visitors, and the moment at which one of two replicas was killed."""
    with behind_proxy(port) as (address, answering):
        processes = dict(islice(answering, 3))
        visit = asyncio.create_task(stay(await arrive(address, count), seconds, HABITS["tokens picked"], downloads=True))
        await asyncio.sleep(seconds / 2)
        os.kill(processes["replica 1"], signal.SIGKILL)
        death = time.monotonic()
        return await visit, death


def main() -> int:
    """Print the table."""
    rows, said = [], []
    for name, habit in HABITS.items():
        tally, (before, during, after) = asyncio.run(on_one_process(CROWD, SECONDS, PORT, habit))
        rows += [
            (f"one process, {name}: median, ms", tally.share(50), 60),
            (f"one process, {name}: 95 of 100, ms", tally.share(95), 500),
            (f"one process, {name}: visits that failed", len(tally.wrong), 0),
            (f"one process, {name}: memory with all, MB", during, 700),
            (f"one process, {name}: memory afterwards / before", after / before, 1.1),
        ]
        said += [f"{len(tally.times):,} runs on one process, {name}", *(what for _, what in tally.wrong[:3])]
    tally, death = asyncio.run(with_a_death(CROWD, SECONDS, PORT + 10))
    rows.append((f"a replica killed: visits that failed {AFTERWARDS} s later", len(tally.late(death + AFTERWARDS)), 0))
    said.append(f"{len(tally.times):,} runs and {tally.downloads} whole downloads on two replicas,")
    said += [f"{len(tally.wrong)} visits cut off by the death of one", *tally.late(death + AFTERWARDS)[:3]]
    print(f"{f'{CROWD} visitors, once every {PAUSE:g} s, {SECONDS} s':62} {'measured':>9} {'bound':>7}")
    for name, value, bound in rows:
        print(f"{name:62} {value:9,.4g} {bound:7,}{'' if value <= bound else '  missed'}")
    print(*said, sep="\n")
    return int(any(value > bound for _, value, bound in rows))


def _until(true, otherwise: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise RuntimeError(f"{otherwise} within {seconds:g} s")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
