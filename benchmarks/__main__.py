"""Every table, one after the other, each in a process of its own: `python -m benchmarks`."""

import subprocess
import sys

for name in ("trace", "trained", "figures", "panels", "page", "overview", "pretrained", "largest", "hosting"):
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False)
    print(flush=True)
