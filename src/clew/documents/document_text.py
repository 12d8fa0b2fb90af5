"""The text of PDF, Word and Excel files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from clew.distribution import format_install_command
from clew.documents.conversion_process import convert_in_process
from clew.errors import ClewError
from clew.record import Record

_CONVERTER: Final = Path(__file__).with_name("document_converter.py")
_PDF, _ZIP, _OLE = b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: Bytes within which a PDF begins, and those that may precede it.
_HEAD, _BEFORE_PDF = 1024, b"\xef\xbb\xbf\0\t\r\n "


class DocumentRefused(ClewError):
    """Document that cannot be read; the text follows its name: ``is encrypted``."""


class DocumentText(Record):
    """The text of a document."""

    text: str
    #: A description, with omissions: ``PDF, 3 pages``.
    remark: str


def may_be_document(content: bytes) -> bool:
    """Return whether content looks like a document; other archives do as well."""
    is_pdf = content[:_HEAD].lstrip(_BEFORE_PDF).startswith(_PDF)
    return is_pdf or content.startswith((_ZIP, _OLE))


async def read_document(content: bytes) -> DocumentText | None:
    """
    Return the text of a document; ``None`` if it is an archive of another kind.

    :raises DocumentRefused: if it cannot be read
    """
    if content.startswith(_OLE):
        raise DocumentRefused("is encrypted, or of an old Office format (.doc, .xls, .ppt)")
    found = await convert_in_process(_CONVERTER, {}, content)
    if found is None:
        raise DocumentRefused("is a document that takes too much time or memory to read")
    if "missing" in found:
        install = format_install_command("documents")
        raise DocumentRefused(f"is a document, and reading it needs a package: {install}")
    if "refused" in found:
        raise DocumentRefused(str(found["refused"]))
    if "text" not in found:
        return None
    # Characters that a UTF-8 store does not accept.
    text = str(found["text"]).replace("\0", "\ufffd").encode(errors="replace").decode()
    return DocumentText(text=text, remark=str(found["remark"]))
