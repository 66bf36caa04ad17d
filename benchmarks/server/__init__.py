"""What the server promises, tried out with real processes: kills while it writes, fast starts.

``python -m benchmarks.server durable|recovery``
"""
