"""A profiler's file as a table: it is recognised (layouts) and read by rows (reader) or columns.

Lines come bounded and counted (text_lines), JSON in pieces (json_chunks); blocks of rows hold cells
by column (blocks, cells), and a cell becomes a number (values). Databases are read by sqlite. What
to do with a file that is none of these, unread says.
"""
