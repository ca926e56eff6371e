"""One call: bound, scheduled, judged, run and ended."""
