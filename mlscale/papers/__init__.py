"""The analytical and regression models of the papers, one pure function per model."""
