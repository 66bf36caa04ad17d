"""`python -m bitweigh`: the same as the command `bitweigh`."""

from bitweigh._cli import main

main()
