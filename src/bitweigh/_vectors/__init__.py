"""The parts of VectorIndex: learning, storing vectors, ranking by true distance."""
