"""The embedded engine: wide columns over any ordered key-value store within this process.

ordered.py   what it asks of such a store        engine.py   the Engine over it
reader.py    keys -> visible cells               group.py    writes on their way to the log
pages.py     visible cells -> pages              overlay.py  a family with the group on top
newest.py    what is written upon a newest cell  datasets.py the open datasets
deleter.py   which keys a delete takes away      sorted_keys.py  what an overlay keeps them in
"""
