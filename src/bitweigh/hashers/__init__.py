"""From real vectors to binary codes, with scikit-learn's manners but without needing scikit-learn.

A hasher's ``project`` gives one real number per bit, ``g``; its ``transform`` gives packed codes
whose bit is ``g > threshold_``. What one row becomes never depends on the rows beside it.
"""

from bitweigh.hashers.itq import ITQ
from bitweigh.hashers.lsh import LSH
from bitweigh.hashers.sign import Sign

__all__ = ["ITQ", "LSH", "Sign"]
