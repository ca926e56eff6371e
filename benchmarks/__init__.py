"""Benchmarks of Handrail against the machine's limit and its peers, measured in one run: `python -m benchmarks`."""
