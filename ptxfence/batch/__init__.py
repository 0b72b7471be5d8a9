"""Checking many files: one at a time, over processes, and with results kept from earlier runs."""
