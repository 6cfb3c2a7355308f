"""Benchmarks of climate: `python -m benchmarks` measures all in short, `python -m benchmarks.<name>` one at length."""
