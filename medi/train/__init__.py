"""Trains an embedding model on a release: from its shards to an ordinary sentence-transformers folder.

Read in the order of the data: `data` maps the shards, `batches` plans the steps, `collate` makes tokens of them
(`tokens`), `micro` embeds them in micro-batches, `ranks` brings the processes together, `loss` contrasts, `loop` steps.
"""
