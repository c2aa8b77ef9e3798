"""The instruction texts of MEDI as data: TOML files that `medi.instruct` turns into sentences; no code lives here."""
