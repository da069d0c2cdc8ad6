"""Long tests, run by hand: `python -m tests.soak crash` and `python -m tests.soak mixed`.

`crash` ends the server with kill -9 again and again and looks for what is lost; tests/server has a
short form of it. `mixed` puts every kind of load on it, with restarts in between, and looks for
lost data and for memory, descriptors and threads that are not given back.
"""
