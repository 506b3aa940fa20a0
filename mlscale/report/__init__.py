"""Pictures of surfaces."""
