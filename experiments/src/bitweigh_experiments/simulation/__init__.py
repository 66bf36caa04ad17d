"""A cluster of many nodes, simulated: what a query takes, and what breaks first.

Costs of calls and of searches are measured on one machine; their sum over a hundred nodes is
simulated by `model`, with a seed. ``python -m bitweigh_experiments.simulation`` prints a table.
"""
