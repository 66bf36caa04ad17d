"""From a query's projections to costs: how much each bit of a code should count.

A weigher is fitted on a hasher's projections of training rows, and turns the projections of queries
into the costs that a search takes.
"""

from bitweigh.weighers.asym import Asym
from bitweigh.weighers.wh import Wh

__all__ = ["Asym", "Wh"]
