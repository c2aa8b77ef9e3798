"""The programs around the library `medi`: Prefect flows and the command line; the only place that imports Prefect."""
