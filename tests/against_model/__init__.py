"""The server against the model: random conversations, every reply compared.

A server with tiny page limits runs on a clock the test holds: its `time.time` reads eight bytes of
a file, so a millisecond lasts until the test moves it on, and what expires when is exact
(steered.py). Each example has a dataset of its own and a handful of rows and columns, so that
things collide (ingredients.py). COLONNADE_EXAMPLES sets how many examples each server gets.
"""
