"""From raw findings to what a person has to act on: stable ids, settings, suppressions, baselines."""
