"""The report: one HTML file without scripts, with inline SVG, every text escaped."""
