"""Backups of a store: whole, checked by hashes, and sent only as far as they are new.

    <place>/objects/<sha256>        a file of some backups, named by what it holds
    <place>/manifests/<name>.json   one backup: its files by name, size and SHA-256

An object is written before the manifest that names it, and a manifest is removed before the objects
that only it named. So a backup is whole as soon as its manifest is there, and whatever was
interrupted leaves at most objects that no manifest names: the next prune removes them.

A place is a local directory, or anything that fsspec has a URL for. Knows no server and no command.
"""
