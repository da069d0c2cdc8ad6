"""The engine, over RocksDB and in memory: both pass the same tests.

`Store` drives it call by call, at a time that stands still until the test moves it. Most tests need
one column only: `write` gives it cells by their timestamps, `shown` says which can be seen. What
holds in general is tried on random data (stories.py), against a second opinion in a few lines of
plain Python.
"""
