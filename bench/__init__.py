"""What a hop through Carnet costs, beside a plain proxy and other agent servers.

Run with `make bench`. The method and how to read the figures: docs/operations/benchmarks.md.
Nothing here is part of the tests or of the package.
"""
