"""Colonnade beside redis-server, and beside itself with more data: `python -m benchmarks --help`.

    workloads.py  what is compared, P1 to P9 and Z    results.py    figures, ratios, targets
    peers.py      those, server after server          table.py      as a table
    growth.py     G1 to G8                            chart.py      as a picture
    direct.py     library.py, by turns                documents.py  both into docs/performance.md
    library.py    storage without a server            machine.py    where all this was measured
    sitting.py    one run: its sizes, its servers, what it noted
    servers.py    servers in processes of their own   lag.py        how late their loops were
    load.py       load for them                       driver.c, driver.py  load of our own

limits.py is a program of its own. Nothing here is part of Colonnade, and only library.py, in a
process of its own, imports any of it: the servers are spoken to through sockets.
"""
