"""The internals of Index: immutable segments, their bands, the state they form, its searches."""
