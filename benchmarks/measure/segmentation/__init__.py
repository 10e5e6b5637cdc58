"""`seunet segment` and its files: correctness, time and memory."""
