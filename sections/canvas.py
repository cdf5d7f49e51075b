"""What the canvases are handed: numbers packed for the browser, and the colours to draw them in."""

from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow

from viz.codes import encode
from viz.colours import DIVERGING, HEADS, SEQUENTIAL, css_role, css_shades

FILES = Path(__file__).parents[1] / "viz"


def script(*names: str) -> str:
    """The code of a component: files of `viz`, one after the other."""
    return "\n".join((FILES / name).read_text() for name in names)


def maps(values: np.ndarray, hidden: np.ndarray | None, *, signed: bool) -> dict:
    """`map query key` numbers in every digit that is shown, and the ends of their scale.

    Tuples, since Streamlit looks into each list for a table.
    """
    packed = encode(values, hidden, signed=signed)
    finite = np.abs(values[np.isfinite(values)])
    return {
        "codes": pyarrow.table({"codes": pyarrow.array(memoryview(packed.packed), pyarrow.uint8())}),
        "id": blake2b(packed.packed, digest_size=8).hexdigest(),
        "zero": packed.zero,
        "decimals": packed.decimals,
        "shape": values.shape,
        "limit": float(finite.max(initial=0)) or 1.0 if signed else 1.0,
        "signed": signed,
        "scale": tuple(css_shades(DIVERGING if signed else SEQUENTIAL)),
        "heads": tuple(css_shades(HEADS)),
        "roles": {role: css_role(role) for role in ("query", "key")},
    }
