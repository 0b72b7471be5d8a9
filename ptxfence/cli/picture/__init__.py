"""The kernel as a picture: what the text says, laid out and drawn as SVG. Needs no value analysis."""
