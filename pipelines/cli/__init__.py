"""The `medi` command: one file a group of commands, each a thin shell over the library."""
