"""
Program that converts a document to text: PDF, Word (.docx) or Excel (.xlsx).

Reads a line of JSON and the document; writes JSON: ``text`` and ``remark``, ``refused`` (why),
``missing`` (the package), or nothing for an archive that is not a document.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import sys
import time
import zipfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Characters of the text, and seconds of the processor after which no further page is read.
_LONGEST, _SECONDS = 2_000_000, 7
#: Bytes of an archive, unpacked, and its files.
_UNPACKED, _FILES = 200_000_000, 20_000
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_BREAKS = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n"}
_DAMAGED = "is damaged: it cannot be read as {}"


class _Refused(Exception):
    """The reason why a document is not read."""


def main() -> None:
    """Convert standard input."""
    logging.disable()
    sys.stdin.buffer.readline()
    json.dump(answer_for(sys.stdin.buffer.read()), sys.stdout)


def answer_for(content: bytes) -> dict[str, str]:
    """Return the answer for a document."""
    try:
        found = convert(content)
    except _Refused as refused:
        return {"refused": str(refused)}
    except ImportError as error:
        return {"missing": str(error.name)}
    return {} if found is None else {"text": found[0], "remark": found[1]}


def convert(content: bytes) -> tuple[str, str] | None:
    """Return the text of a document, and a description; ``None`` if it is not a document."""
    if not content.startswith(b"PK"):
        return _guard("a PDF", _convert_pdf, content)
    names = _check_archive(content)
    if "word/document.xml" in names:
        return _guard("a Word file", _convert_word, content)
    if "xl/workbook.xml" in names:
        return _guard("an Excel file", _convert_excel, content)
    return None


def _guard(kind: str, run: Any, content: bytes) -> tuple[str, str]:
    try:
        return run(content)
    except (_Refused, ImportError, MemoryError):
        raise
    except Exception:  # noqa: BLE001  (whatever a library does with a damaged document)
        raise _Refused(_DAMAGED.format(kind)) from None


def _check_archive(content: bytes) -> set[str]:
    """Return the names in an archive that is not too large when it is unpacked."""
    try:
        files = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        raise _Refused(_DAMAGED.format("an archive")) from None
    size = sum(file.file_size for file in files)
    if size > _UNPACKED or len(files) > _FILES:
        raise _Refused(
            f"unpacks to {size:,} bytes in {_count(len(files), 'file')}; "
            f"at most {_UNPACKED:,} bytes are read"
        )
    return {file.filename for file in files}


def _join(parts: Iterable[str]) -> tuple[str, bool]:
    """Return the parts that fit, and whether these are all."""
    taken: list[str] = []
    room = _LONGEST
    for part in parts:
        taken.append(part[:room])
        room -= len(part) + 1
        if room < 0 or time.process_time() > _SECONDS:
            return "\n".join(taken), False
    return "\n".join(taken), True


def _finish(kind: str, parts: Iterable[str]) -> tuple[str, str]:
    text, whole = _join(parts)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, f"{kind}, text only" + ("" if whole else "; not all of it: it is too long")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _convert_pdf(content: bytes) -> tuple[str, str]:
    pypdf = importlib.import_module("pypdf")
    errors = importlib.import_module("pypdf.errors")
    reader = pypdf.PdfReader(io.BytesIO(content))
    try:
        if reader.is_encrypted and not reader.decrypt(""):
            raise _Refused("is encrypted: it needs a password")
    except (errors.DependencyError, NotImplementedError):
        raise _Refused("is encrypted in a way that is not supported") from None
    count = len(reader.pages)
    seen: list[str] = []
    text, remark = _finish(f"PDF, {_count(count, 'page')}", _iter_pages(reader, count, seen))
    if not any(seen):
        raise _Refused(f"is a PDF of {_count(count, 'page')} without text: probably scanned pages")
    return text, remark


def _iter_pages(reader: Any, count: int, seen: list[str]) -> Iterator[str]:
    for number in range(count):
        try:
            text = str(reader.pages[number].extract_text()).strip()
            seen.append(text)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  (one damaged page of many)
            text = "[this page cannot be read]"
        yield f"--- page {number + 1} ---\n{text}"


def _convert_word(content: bytes) -> tuple[str, str]:
    document = importlib.import_module("docx").Document(io.BytesIO(content))
    return _finish("Word file", _iter_blocks(document.element.body))


def _iter_blocks(parent: Any) -> Iterator[str]:
    """Yield paragraphs and tables, also those in fields and in changes that are not accepted."""
    for child in parent:
        if child.tag == f"{_WORD}p":
            yield _paragraph(child)
        elif child.tag == f"{_WORD}tbl":
            yield from _iter_rows(child)
        elif child.tag not in (f"{_WORD}del", f"{_WORD}moveFrom"):
            yield from _iter_blocks(child)


def _paragraph(paragraph: Any) -> str:
    return "".join(_iter_texts(paragraph)).strip("\n")


def _iter_texts(parent: Any) -> Iterator[str]:
    for child in parent:
        if child.tag == f"{_WORD}t":
            yield child.text or ""
        elif child.tag in _BREAKS:
            yield _BREAKS[child.tag]
        elif child.tag not in (_FALLBACK, f"{_WORD}pPr", f"{_WORD}del", f"{_WORD}moveFrom"):
            yield from _iter_texts(child)
            if child.tag == f"{_WORD}p":  # in a text box
                yield "\n"


def _iter_rows(table: Any) -> Iterator[str]:
    for row in table.iterchildren(f"{_WORD}tr"):
        cells = row.iterchildren(f"{_WORD}tc")
        yield "\t".join(" ".join("\n".join(_iter_blocks(cell)).split()) for cell in cells)


def _convert_excel(content: bytes) -> tuple[str, str]:
    openpyxl = importlib.import_module("openpyxl")
    # Values as last stored; the formula where no value was stored.
    values, formulas = (
        openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=one)
        for one in (True, False)
    )
    count = len(values.worksheets)
    return _finish(f"Excel file, {_count(count, 'sheet')}", _iter_sheets(values, formulas))


def _iter_sheets(values: Any, formulas: Any) -> Iterator[str]:
    for sheet, other in zip(values.worksheets, formulas.worksheets, strict=True):
        yield f"--- sheet {sheet.title} ---"
        for one in (sheet, other):
            one.reset_dimensions()  # files say what is not so
        rows = (each.iter_rows(values_only=True) for each in (sheet, other))
        for row, formula in zip(*rows, strict=True):
            cells = [_cell(one, two) for one, two in zip(row, formula, strict=True)]
            yield "\t".join(cells).rstrip("\t")


def _cell(value: object, formula: object) -> str:
    found = getattr(formula, "text", formula) if value is None else value
    return "" if found is None else " ".join(str(found).split())


if __name__ == "__main__":
    main()
