"""A release becomes pages a person reads: the dataset card, and the report that a browser shows."""
