"""The paper's MIH: near codes by plain Hamming distance, ranked by weighted distance."""

from __future__ import annotations

from benchmarks.peers.paper_tables import PaperTables
from bitweigh import paper


class PaperMih(PaperTables):
    """bitweigh.paper.MIH, which ranks all codes within the radius that holds k; not exact."""

    name = "paper MIH"
    exact = False
    _method = paper.MIH
