"""What is claimed about speed, re-runnable: `python -m benchmarks` prints every table."""
