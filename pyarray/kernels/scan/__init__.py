"""Scans (running sums and products), compaction and histograms."""
