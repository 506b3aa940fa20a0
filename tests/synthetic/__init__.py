"""Made data with a known truth."""
