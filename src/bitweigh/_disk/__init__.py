"""The disk below every file that bitweigh keeps: plain files only, whole or not at all.

A path that a caller gives may be a link, or lead through some: it is resolved once, by `resolved`.
Nothing below it is followed.
"""
