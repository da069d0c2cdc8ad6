"""What pyproject.toml cannot say: the compiled twins, which are left out without a compiler.

See storage/compiled.py for how they are chosen.
"""

from __future__ import annotations

from setuptools import Extension, setup

TWINS = (
    "commands._pipelined",
    "resp_server._reply",
    "resp_server._scanning",
    "storage._clock",
    "storage.embedded._reading",
    "storage.embedded._row_cache",
    "storage.embedded._writing",
)


def extensions() -> list[Extension]:
    """None where Cython cannot be had; one that cannot be compiled is passed over."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sources = [Extension(name, [f"{name.replace('.', '/')}.pyx"]) for name in TWINS]
    found: list[Extension] = cythonize(sources, build_dir="build")
    for extension in found:
        extension.optional = True  # said before, it would not outlive cythonize
    return found


setup(ext_modules=extensions())
