"""Tests of ptxfence."""
