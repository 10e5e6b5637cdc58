"""Readers and writers of data sets, stain normalisation, verification."""
