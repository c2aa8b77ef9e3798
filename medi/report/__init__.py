"""A manifest becomes pages a person reads: the dataset card (and, later, the report)."""
