"""`python -m bitweigh.cli`, the same as `bitweigh`."""

from bitweigh.cli import main

main()
