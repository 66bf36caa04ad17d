"""Access to the disk for every file that bitweigh stores: plain files, complete or absent.

A path from a caller may be a link or lead through links: `resolved` resolves it once. No link below
it is followed.
"""
