"""`python -m bitweigh._cli`, the same as `bitweigh`."""

from bitweigh._cli import main

main()
