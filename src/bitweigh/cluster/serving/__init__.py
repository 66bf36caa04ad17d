"""Serving shards from several machines: holders answer, a coordinator asks, a keeper keeps.

    wire          what is sent, as bytes
    holder        opens shards and searches them; knows nothing of others
    replicas      one question to one of several holders, with hedges
    maps          which version is searched, and which holders have its shards
    queue         calls that wait, and the batches that they go in
    coordinator   asks all groups for a batch; shares of k, merging
    client        the object that callers use
    reports       what it tells them beside plain results
    desired       what a cluster is to serve, as a file
    ray_actors    holders and the keeper as actors of a Ray cluster
    on_ray        starting a cluster there, and connecting to it

Only the last two use Ray. Everything else is tested without it.
"""
