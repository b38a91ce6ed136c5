"""Capsule errors: what can be wrong with a capsule or with its signature."""

from __future__ import annotations


class CapsuleError(Exception):
    """A capsule cannot be made, read or believed. Nothing of it was extracted.

    ::

        CapsuleError
         ├── NotAnArchive      no zip, or a part of one
         ├── TrailingData      something stands after the archive, or before it
         ├── TooLarge          too many bytes or files
         ├── Compressed        a file is not stored as it is: what zip bombs are made of
         ├── AbsoluteName      a file's name begins at the root of a disk
         ├── PathTraversal     a file's name leads out of the capsule
         ├── UnsafeName        a name that not every system keeps as it is
         ├── NotAFile          a symbolic link, a device, a folder
         ├── DuplicateName     a name stands twice
         ├── CaseCollision     two names are one where case or composition do not count
         ├── ChangedBytes      bytes are not those that were packed
         ├── CompiledCode      code that nobody can read
         ├── WrongLayout       a file that a capsule has no place for, or one that it lacks
         ├── WrongManifest     a manifest that is no JSON object, or that names other code or another lock
         └── SignatureError
              ├── NotAKey          no Ed25519 key in PEM
              ├── NotAnEnvelope    no DSSE envelope with a statement about a capsule
              ├── AnotherCapsule   the statement is about other bytes
              ├── UnknownSigner    no trusted key signed it
              └── WrongSignature   a trusted key is named, and the signature is not its own
    """


class NotAnArchive(CapsuleError):
    """It is no zip archive, or only a part of one."""


class TrailingData(CapsuleError):
    """Something stands before or after the archive, where a reader would not look."""


class TooLarge(CapsuleError):
    """It has too many bytes or files."""


class Compressed(CapsuleError):
    """A file does not lie in the archive as it is, so its size cannot be known without unpacking it."""


class AbsoluteName(CapsuleError):
    """The name of a file begins at the root of a disk."""


class PathTraversal(CapsuleError):
    """The name of a file leads out of the capsule."""


class UnsafeName(CapsuleError):
    """Not every system keeps the name of a file as it is."""


class NotAFile(CapsuleError):
    """An entry is a symbolic link, a device or a folder."""


class DuplicateName(CapsuleError):
    """A name stands twice, or is that of a file and of a folder."""


class CaseCollision(CapsuleError):
    """Two names are the same file where upper and lower case, or composed letters, are not told apart."""


class ChangedBytes(CapsuleError):
    """The bytes are not those that were packed."""


class CompiledCode(CapsuleError):
    """It holds compiled Python, which would be run in place of the source that people read."""


class WrongLayout(CapsuleError):
    """It holds a file that has no place in a capsule, or lacks one."""


class WrongManifest(CapsuleError):
    """A manifest in it is not one, or names other code or another lock than the capsule holds."""


class SignatureError(CapsuleError):
    """Its signature cannot be believed."""


class NotAKey(SignatureError):
    """It is no Ed25519 key in PEM."""


class NotAnEnvelope(SignatureError):
    """It is no DSSE envelope around an in-toto statement about a capsule."""


class AnotherCapsule(SignatureError):
    """What was signed is another capsule."""


class UnknownSigner(SignatureError):
    """No key that is trusted signed it."""


class WrongSignature(SignatureError):
    """The signature was not made by the key that it names, or not over these bytes."""
