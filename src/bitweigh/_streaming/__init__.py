"""Building lean segments from more rows than fit into memory: sorted runs on disk, merged by key.

`bitweigh._streaming.build.build_lean` is the way in; docs/file-format.md has the layout.
"""
