"""Reports and protocols in the words they had before docs/glossary.md."""

from __future__ import annotations

_OLD = {
    "scaled filters, ": "told, ",
    "resampled, ": "oracle resize, ",
    "stated, ": "known, ",
    "scaled_filters": "told",
    "resampled": "oracle",
    "stated": "known",
}


def in_old_words(text: str) -> str:
    """JSON of an evaluation or YAML of a protocol."""
    for new, old in _OLD.items():
        text = text.replace(new, old)
    return text
