"""What Index is made of: immutable segments, their bands, the state they form, its searches."""
