"""Running sums and what is made of them: compaction, histograms."""
