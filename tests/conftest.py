"""Runs as `pytest tests` from the root of the repository, with nothing installed but requirements.txt.

Two test files may not share a name, even in different folders: there are no packages here to tell them apart.
"""

import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[1]))

torch.set_num_threads(1)  # as the app does: another number of threads may round a last digit differently

settings.register_profile("lab", deadline=None, max_examples=200)
settings.load_profile("lab")


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    torch.manual_seed(0)
