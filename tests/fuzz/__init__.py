"""Fuzzing: inputs nobody thought of, and for each target what must hold whatever comes.

    python -m tests.fuzz TARGET --minutes n     look for new ones (atheris, or a plain loop)
    python -m tests.fuzz TARGET --file FILE     run one input, as one that a search has saved

A target is a module here with a TARGET: a function of bytes that raises when something does not
hold. tests/test_fuzz_corpus.py runs corpus/TARGET/*, inputs worth keeping, through it.
"""
