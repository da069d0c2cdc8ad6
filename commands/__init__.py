"""The commands: what each one's arguments mean, and which calls of the store answer it.

    table.py       declarations, from which arity checks, COMMAND, docs and hints derive
    syntax.py      a syntax line -> the arguments that COMMAND DOCS describes
    arguments.py   reading arguments      replies.py   values with a protocol type of their own
    errors.py      error texts            context.py   what a handler is given
    families.py    one module a family of commands: imports them all

Knows no socket and no byte of RESP.
"""
