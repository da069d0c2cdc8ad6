"""The embedded engine: wide columns over any ordered key-value store within this process.

ordered.py   what it asks of such a store        engine.py   the Engine over it
reader.py    keys -> pages of visible cells      group.py    writes on their way to the log
deleter.py   which keys a delete takes away
"""
