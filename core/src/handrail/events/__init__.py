"""Events of calls: streams, live output and telemetry."""
