"""The operations as Triton kernels, for vectors on a GPU; needs the optional package triton.

Nothing else imports these modules. They give the bytes of the reference, which is checked in
Triton's interpreter; how fast they are on a GPU has not been measured.
"""
