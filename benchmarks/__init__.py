"""What climate costs, measured: `python -m benchmarks` runs all in short, `python -m benchmarks.<name>` one at length."""
