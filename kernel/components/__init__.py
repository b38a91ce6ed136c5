"""Console components: diffs, charts, waterfalls, timelines, form parts, and the labels of states and kinds."""
