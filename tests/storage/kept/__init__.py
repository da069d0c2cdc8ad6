"""Stores that releases have written, and what is in them. `make.py` wrote the newest one."""
