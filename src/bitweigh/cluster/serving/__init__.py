"""Serving shards from several machines: holders answer, a coordinator asks, a keeper keeps.

    wire          what is sent, as bytes
    holder        opens shards and searches them; knows nothing of others
    replicas      one question to one of several holders, with hedges
    coordinator   batches of queries, shares of k, merging
    client        the object that callers use
    keeper        the desired state, and how it is reached
    on_ray        all of this as actors of a Ray cluster

Only `on_ray` imports Ray. Everything else is tested without it.
"""
