"""The encoders of the presets by their names on the Hub; apart from what fetches them, which takes long to import."""

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
SENTENCE_T5 = "sentence-transformers/sentence-t5-large"
