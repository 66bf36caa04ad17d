"""What VectorIndex is made of: learning, storing vectors, ranking by true distance."""
