"""The store: rows, columns, cells, bytes on disk. It knows no protocol, no client, no config file.

    engine.py     what an engine does           embedded/     the engine in this process
    model.py      the words of its calls        rocks/        its store on disk
    encoding.py   keys and values on disk       memory/       its store in memory
    cursors.py    where a page ended            maintenance/  background work

Use alone: `engine = open_engine(Path("data"))`, then the calls of storage.engine.Engine.
"""
