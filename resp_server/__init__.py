"""The server: sockets, RESP, clients, settings, lifecycle.

    __main__.py, server.py           the program, and the server's life
    listening.py, doors.py           where clients come in; tls.py, protected.py, descriptors.py
    connection.py                    one client's bytes in, replies out
      careful.py, parser.py          bytes -> commands
      execution.py                   what a command must pass, and what is noted of it
      handover.py                    stepping handlers by hand
      reply.py, monitoring.py        values -> bytes
      flow.py, idle.py, keep_alive.py, output_limit.py
    tick.py                          the commit, then the replies
    clients.py                       who is connected
    services.py, live.py             what handlers may ask of the server; settings at work
    information.py, counters.py, process.py, supervision.py
    settings/, configuration.py, rewriting.py    every directive, once; CONFIG

The only room that knows asyncio transports and RESP. What commands mean is commands/' to know.
"""
