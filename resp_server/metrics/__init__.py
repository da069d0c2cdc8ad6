"""What monitoring asks for, by HTTP on a port of its own: `/metrics`, `/healthz` and `/readyz`.

    http.py        HTTP/1.1, as little as is needed, for anybody who finds the port
    readiness.py   whether clients should be sent here
    collector.py   the metrics, read when they are asked for
    page.py        their text, made in slices
    service.py     all of it together

Metrics are read from what is counted anyway; nothing here is part of a command. collector.py and
page.py need prometheus_client, which is an optional dependency: only service.py imports them, when
`metrics-port` is set.
"""
