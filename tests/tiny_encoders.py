"""Makes small random encoders as ordinary sentence-transformers folders: real files and real code, no download.

Weights are random but seeded: equal folders on every machine that runs the same versions.
"""

import string
from collections.abc import Iterator
from pathlib import Path

_WORDS = (
    "the of and to in is a for on with as by at from it that this are was be or an not which what who how why when "
    "where does did can water city year people answer question news title article document sentence example"
).split()


def make_tiny_bert(folder: Path) -> None:
    """Write a BERT of 2 layers and 32 dimensions whose word pieces are letters and a few words."""
    import torch
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(0)
    letters = string.ascii_lowercase + string.digits + string.punctuation
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *letters, *(f"##{c}" for c in letters), *(word for word in _WORDS if len(word) > 1)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = BertTokenizer(vocab=vocabulary, model_max_length=128)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    _save(folder, BertModel(config), tokenizer)


def make_tiny_t5(folder: Path) -> None:
    """Write a T5 encoder of 2 layers and 32 dimensions with a sentencepiece model trained on invented sentences."""
    import sentencepiece
    import torch
    from transformers import T5Config, T5EncoderModel, T5Tokenizer

    torch.manual_seed(0)
    folder.mkdir(parents=True)
    model = folder / "spiece.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_sentences(), model_writer=model.open("wb"), vocab_size=300, pad_id=0, eos_id=1, unk_id=2,
        bos_id=-1, hard_vocab_limit=False, num_threads=1, minloglevel=2,
    )  # fmt: skip
    tokenizer = T5Tokenizer.from_pretrained(folder, extra_ids=0, model_max_length=128)
    config = T5Config(vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)
    _save(folder, T5EncoderModel(config), tokenizer)


def _sentences() -> Iterator[str]:
    """Yield sentences that hold every printable letter and enough pairs of words to learn pieces from."""
    yield from (" ".join(c * 3 for c in string.printable.strip()) for _ in range(3))
    for number in range(2000):
        yield " ".join(_WORDS[(number * step) % len(_WORDS)] for step in (3, 5, 7, 11, 13)) + f" {number}."


def _save(folder: Path, model: object, tokenizer: object) -> None:
    """Write the plain model, then the sentence-transformers folder around it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    plain = folder.with_name(f"{folder.name}-plain")
    model.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    body = Transformer(str(plain), max_seq_length=128)
    SentenceTransformer(modules=[body, Pooling(32, "mean"), Normalize()], device="cpu").save(str(folder))


def make_cross_encoder(folder: Path, labels: int) -> None:
    """Write a BERT of 2 layers that scores pairs: random, seeded, saved and loaded by the library itself."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(0)
    letters = string.ascii_lowercase + string.digits
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        num_labels=labels, initializer_range=0.4,
    )  # fmt: skip
    plain = folder.with_name(f"{folder.name}-plain")
    BertForSequenceClassification(config).save_pretrained(plain)
    BertTokenizer(vocab={p: n for n, p in enumerate(pieces)}, model_max_length=128).save_pretrained(plain)
    CrossEncoder(str(plain), device="cpu", local_files_only=True).save(str(folder))
