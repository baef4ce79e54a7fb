"""Sessions, rates and a bus in Redis."""

try:
    import redis as _redis  # noqa: F401 - the modules of this package import parts of it
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Redis needs: pip install "funcmcp[redis]"', name=error.name) from None
