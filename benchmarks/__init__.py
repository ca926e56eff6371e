"""How fast Handrail is, beside the limit of the machine and beside its peers, measured in one run: `python -m benchmarks`."""
