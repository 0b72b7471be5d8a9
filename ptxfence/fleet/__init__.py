"""Compile caches of any size, checked on a Dask cluster. Needs the extra `fleet`."""
