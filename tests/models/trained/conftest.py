"""What the tests of trained models add to pytest."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: trains a model from nothing; leave out with -m 'not slow'")
