"""Metrics of the four papers: arrays in, arrays out."""
