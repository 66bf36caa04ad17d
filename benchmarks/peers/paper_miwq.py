"""The paper's Alg. 2 as printed: buckets of several tables in ascending weighted distance."""

from __future__ import annotations

from benchmarks.peers.paper_tables import PaperTables
from bitweigh import paper


class PaperMiwq(PaperTables):
    """bitweigh.paper.MIWQ; sums are float64."""

    name = "paper Alg. 2"
    exact = True
    _method = paper.MIWQ
