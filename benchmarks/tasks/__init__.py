"""The tasks of benchmarks/usefulness.py."""
