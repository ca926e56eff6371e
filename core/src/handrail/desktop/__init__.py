"""Desktop state: leases, input records, and the user's stop switch."""
