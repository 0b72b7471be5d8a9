"""Hostile input: the parser and the analysis must answer or refuse, never crash, hang or waver."""
