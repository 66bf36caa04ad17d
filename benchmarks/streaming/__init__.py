"""What a streaming build promises, tried out: kills, full disks, memory.

``python -m benchmarks.streaming kills|full-disk|memory``
"""
