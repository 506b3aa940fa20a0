"""mlscale study: one sub-command a study."""
