"""The server: sockets, RESP, clients, settings, lifecycle.

    __main__.py   the program            settings.py     every directive, once
    server.py     start, tick, stop      connection.py   one client's bytes in, replies out
    parser.py     bytes -> commands      reply.py        values -> bytes
    handover.py   stepping handlers      information.py  what INFO tells

The only room that knows asyncio transports and RESP. What commands mean is commands/' to know.
"""
