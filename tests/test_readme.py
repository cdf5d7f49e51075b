"""The README's Python runs as it stands, with nothing but its own imports."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
CHECKS = """
import numpy as np
[*maps] = [trace for trace in figure.data if trace.type == "heatmap"]
assert len(maps) == 4
for shown, computed in zip(maps, weights[0], strict=True):
    np.testing.assert_array_equal(shown.z, computed)
import sys
assert "streamlit" not in sys.modules
"""


def run(code: str, folder: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_runs(code, tmp_path):
    run(code, tmp_path)


def test_the_notebook_draws_what_torch_computed_into_a_file_of_its_own(tmp_path):
    (code,) = [code for code in EXAMPLES if "nn.MultiheadAttention(" in code]
    run(code + CHECKS, tmp_path)
    written = (tmp_path / "attention.html").read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>") and "default-src 'none'" in written
    assert all(f'"{token}"' in written for token in ("one", "step", "after", "another"))
