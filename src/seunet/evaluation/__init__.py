"""Scales, metrics, equivariance, figures."""
