"""Starts replicas and the proxy in front of them, watches them, and starts again what dies or no longer answers."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

HERE = Path(__file__).parent
HEALTH = "/_stcore/health"
PROXY_HEALTH = "/_stcore/proxy"
EVERY = 1.0
"""Seconds from one look at all to the next."""
PATIENCE, SILENCES = 3, 10
"""Seconds an answer may take, and looks in a row without one, after which a process is hung and not only busy."""
STARTING = 60.0
"""Seconds a process may take to its first answer."""


@dataclass
class Service:
    """One process, and the address at which it says that it is well. answered: since its start; worked: ever."""

    name: str
    command: list[str]
    health: str
    process: subprocess.Popen | None = None
    started: float = 0.0
    silences: int = 0
    answered: bool = False
    worked: bool = False

    def start(self) -> None:
        """Run it, in place of what ran before."""
        self.stop(signal.SIGKILL)
        self.process = subprocess.Popen(self.command, cwd=HERE.parent, start_new_session=True)
        self.started, self.silences, self.answered = time.monotonic(), 0, False

    def stop(self, how: signal.Signals) -> None:
        """End it and what it started, and wait until it has. nginx's workers outlive a killed master."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, how)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def look(self) -> str | None:
        """What is wrong with it, if anything."""
        if (code := self.process.poll()) is not None:
            return f"ended with {code}"
        if answers(self.health):
            if not self.answered:
                say(f"{self.name} answers at {self.health}, process {self.process.pid}")
            self.silences, self.answered, self.worked = 0, True, True
            return None
        self.silences += 1
        if self.answered:
            return f"did not answer {SILENCES} times in a row" if self.silences >= SILENCES else None
        return f"did not answer within {STARTING:.0f} s" if time.monotonic() - self.started > STARTING else None


def serve(replicas: int, address: str, port: int) -> None:
    """Run the site at `address:port`, replicas on the ports after it on loopback, until told to end.

    Raises `SystemExit` where nginx is missing, or something ends before it ever answered.
    """
    if (server := nginx()) is None:
        raise SystemExit(
            "Replicas need nginx in front of them, and it was not found. Install it (Debian: apt-get install nginx), "
            "or run one process without it: streamlit run deploy/hosted.py"
        )
    os.environ.setdefault("STREAMLIT_SERVER_COOKIE_SECRET", secrets.token_hex(32))
    ports = range(port + 1, port + 1 + replicas)
    with TemporaryDirectory(prefix="attention-lab-") as folder:
        os.chmod(folder, 0o711)  # nginx's workers are another user
        Path(folder, "nginx.conf").write_text(configuration(ports, f"{address}:{port}"), encoding="utf-8")
        proxy = [server, "-p", folder, "-c", f"{folder}/nginx.conf", "-e", "stderr"]
        _watch(
            [
                *(replica(f"replica {number}", each) for number, each in enumerate(ports, 1)),
                Service("proxy", proxy, f"http://127.0.0.1:{port}{PROXY_HEALTH}"),
            ]
        )


def nginx() -> str | None:
    """Where nginx is; not every user has its folder in the path."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def replica(name: str, port: int) -> Service:
    """One process of the app at a port of this machine."""
    command = [sys.executable, "-m", "streamlit", "run", str(HERE / "hosted.py"), f"--server.port={port}"]
    return Service(name, command, f"http://127.0.0.1:{port}{HEALTH}")


def configuration(ports: range, listen: str) -> str:
    """nginx.conf with its gaps filled. Which replica is down is seen anew at each request."""
    replicas = "\n        ".join(f"server 127.0.0.1:{port} max_fails=0;" for port in ports)
    template = (HERE / "nginx.conf").read_text(encoding="utf-8")
    return template.replace("@REPLICAS@", replicas).replace("@LISTEN@", listen).replace("@HEALTH@", PROXY_HEALTH)


def answers(health: str) -> bool:
    """Whether a service says at this address that it is well."""
    with suppress(OSError), urlopen(health, timeout=PATIENCE) as answer:
        return answer.status == 200
    return False


def say(sentence: str) -> None:
    """To whoever runs the site."""
    print(sentence, flush=True)


def _watch(services: list[Service]) -> None:
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, _end)
    try:
        for service in services:
            service.start()
        while True:
            time.sleep(EVERY)
            for service in services:
                if wrong := service.look():
                    if not service.worked:
                        raise SystemExit(f"{service.name} {wrong} before it ever answered. Its reason is above.")
                    say(f"{service.name} {wrong}; it is started again")
                    service.start()
    finally:
        for service in reversed(services):
            service.stop(signal.SIGTERM)


def _end(*_: object) -> None:
    raise SystemExit(0)
