"""Codecs, one a file, filed under their names."""

from slimgrad.comm.codecs.base import Codec
from slimgrad.comm.codecs.context import Context
from slimgrad.comm.codecs.fixed import Fixed
from slimgrad.comm.codecs.rans import Rans
from slimgrad.comm.codecs.raw import Raw
from slimgrad.core.registry import Registry

CODECS = Registry[type[Codec]]("codec")
for _codec in (Fixed, Raw, Rans, Context):
    CODECS.add(_codec.name)(_codec)


def codec_with_id(code_id: int) -> Codec | None:
    """The codec a frame names by its number on the wire, None when there is none.

    >>> codec_with_id(1).name
    'fixed'
    """
    codecs = (CODECS.get(name) for name in CODECS)
    return next((codec() for codec in codecs if codec.code_id == code_id), None)


__all__ = ["CODECS", "Codec", "Context", "Fixed", "Rans", "Raw", "codec_with_id"]
