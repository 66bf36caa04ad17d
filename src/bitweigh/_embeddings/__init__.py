"""The parts of BinaryEmbeddings: checking input, keeping vectors, scoring, files."""
