"""Every table, one after the other: `python -m benchmarks`."""

from benchmarks import figures, page, trace

for benchmark in (trace, figures, page):
    benchmark.main()
    print()
