"""The command line: one file for each subcommand; main.py is a list of them."""
