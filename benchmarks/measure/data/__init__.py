"""The data room on real data and on images with known stains."""
