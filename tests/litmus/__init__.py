"""Litmus tables: small kernels with the verdict that each must get."""
