"""Studies: repeatable error measurements, with everything refitted inside each fold."""
