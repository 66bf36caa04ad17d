"""The experiments of the paper that bitweigh starts from, and a demonstration on real texts."""
