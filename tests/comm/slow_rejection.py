"""How the second decoder refuses a frame."""


class RejectedError(Exception):
    pass


def require(condition, reason):
    if not condition:
        raise RejectedError(reason)
