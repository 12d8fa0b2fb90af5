"""PDF, Word and Excel files as text: real files, read by the limited process."""

from __future__ import annotations

import importlib
import io
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from clew.documents import document_converter, document_text
from clew.documents.conversion_process import convert_in_process
from clew.documents.document_text import DocumentRefused, may_be_document, read_document
from clew.features.files.reading import read_lines
from clew.features.files.turn_workspace import LocatedPath
from clew.sandbox.errors import FileRefused
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

docx: Any = importlib.import_module("docx")
qn: Any = importlib.import_module("docx.oxml.ns").qn
openpyxl: Any = importlib.import_module("openpyxl")
pypdf: Any = importlib.import_module("pypdf")


def make_pdf(*pages: str) -> bytes:
    """A PDF of pages with one line each, written by hand."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() if text else b""
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} "
        objects.append(page.encode() + b"0 R /Resources << /Font << /F1 3 0 R >> >> >>")
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(drawn), drawn))
    made, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, start=1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer << /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    return made + head + table + tail + b"startxref\n%d\n%%%%EOF\n" % len(made)


def make_word() -> bytes:
    document = docx.Document()
    document.add_heading("Offer", 1)
    document.add_paragraph("first\tsecond")
    # As Word stores a change that nobody has accepted yet.
    changed = document.add_paragraph("paid ")._p
    inserted = changed.makeelement(qn("w:ins"), {})
    inserted.append(changed.makeelement(qn("w:r"), {}))
    inserted[0].append(changed.makeelement(qn("w:t"), {}))
    inserted[0][0].text = "late"
    changed.append(inserted)
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ("item", "price", "milk", "1 €"), strict=True):
        cell.text = text
    return _saved(document)


def make_excel() -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "Costs"
    book.active.append(["item", "price", None])
    book.active.append([])
    book.active.append(["milk\nfresh", 1.5, "=B3*2"])
    book.create_sheet("Empty")
    return _saved(book)


def make_bomb() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "\0" * 1000)
        archive.infolist()[0].file_size = 4_000_000_000
    return made.getvalue()


def make_archive(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), text)
    return made.getvalue()


def _saved(document: Any) -> bytes:
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


def _encrypted(pdf: bytes, password: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf))
    writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "work")
    made.create()
    return made


async def read(space: Workspace, content: bytes, *, line: int = 1, lines: int = 2000) -> str:
    space.write_file("x", content)
    try:
        return await read_lines(LocatedPath(space, "x", is_inside=True), line=line, lines=lines)
    except FileRefused as refused:
        return f"refused: {refused}"


async def test_documents_are_read_as_lines_of_text(space: Workspace) -> None:
    pdf = make_pdf("Hello \\(once\\)", "", "the end")
    assert await read(space, pdf) == (
        "--- page 1 ---\nHello (once)\n--- page 2 ---\n\n--- page 3 ---\nthe end\n"
        "[PDF, 3 pages, text only]"
    )
    assert await read(space, pdf, line=2, lines=1) == (
        "Hello (once)\n[PDF, 3 pages, text only; lines 2 to 2 of 6; go on with line=3]"
    )
    assert await read(space, _encrypted(make_pdf("for all"), "")) == (
        "--- page 1 ---\nfor all\n[PDF, 1 page, text only]"
    )
    assert await read(space, make_word()) == (
        "Offer\nfirst\tsecond\npaid late\nitem\tprice\nmilk\t1 €\n[Word file, text only]"
    )
    assert await read(space, make_excel()) == (
        "--- sheet Costs ---\nitem\tprice\n\nmilk fresh\t1.5\t=B3*2\n--- sheet Empty ---\n"
        "[Excel file, 2 sheets, text only]"
    )
    text = b"A PDF begins with %PDF-1.7 and a number."
    assert await read(space, text) == text.decode()


async def test_a_document_that_cannot_be_read_is_refused_with_a_sentence(space: Workspace) -> None:
    word, excel = make_word(), make_excel()
    for content, told in (
        (_encrypted(make_pdf("secret"), "word"), "is encrypted: it needs a password"),
        (make_pdf("", ""), "is a PDF of 2 pages without text: probably scanned pages"),
        (b"%PDF-1.7\n" + b"\xff\0" * 500, "is damaged: it cannot be read as a PDF"),
        (word[:-200], "is damaged: it cannot be read as an archive"),
        (
            make_archive(word__document_xml="<broken"),
            "is damaged: it cannot be read as a Word file",
        ),
        (excel.replace(b"PK\x03\x04", b"PK\x03\x05"), "is binary"),
        (
            make_archive(xl__workbook_xml="<broken"),
            "is damaged: it cannot be read as an Excel file",
        ),
        (make_archive(a="text"), "is binary"),
        (
            make_bomb(),
            "unpacks to 4,000,000,000 bytes in 1 file; at most 200,000,000 bytes are read",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
            "is encrypted, or of an old Office format (.doc, .xls, .ppt)",
        ),
    ):
        found = await read(space, content)
        assert found.startswith(f"refused: 'x' {told}"), found


def with_entities(archive: bytes, name: str, old: str, *declared: str) -> bytes:
    """An archive, one of whose files declares entities and has the first one in place of a text."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(made, "w") as target:
        for file in source.namelist():
            content = source.read(file)
            if file == name:
                head, end, rest = content.decode().rpartition("?>")
                entities = "".join(f"<!ENTITY {one}>" for one in declared)
                first = declared[0].split()[0]
                changed = rest.replace(old, f"&{first};", 1)
                assert changed != rest
                content = f"{head}{end}<!DOCTYPE r [{entities}]>{changed}".encode()
            target.writestr(file, content)
    return made.getvalue()


@pytest.mark.parametrize("kind", ["word", "excel"])
async def test_a_document_reaches_no_other_file_and_does_not_grow_without_end(
    space: Workspace, tmp_path: Path, kind: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("TOP SECRET")
    name, old = {
        "word": ("word/document.xml", "first"),
        "excel": ("xl/worksheets/sheet1.xml", "item"),
    }[kind]
    content = make_word() if kind == "word" else make_excel()
    laughs = [f'e{n} "{f"&e{n + 1};" * 10}"' for n in range(9)]
    for declared in ([f'x SYSTEM "{secret.as_uri()}"'], [*laughs, f'e9 "{"ha" * 500}"']):
        text = await read(space, with_entities(content, name, old, *declared))
        assert "SECRET" not in text
        assert len(text) < 1_000


async def test_without_its_package_a_document_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    answer = document_converter.answer_for(make_pdf("text"))
    assert answer == {"missing": "pypdf"}

    async def convert(*_: object) -> dict[str, str]:
        return answer

    monkeypatch.setattr(document_text, "convert_in_process", convert)
    with pytest.raises(DocumentRefused, match=r"needs a package: pip install '.*\[documents\]'"):
        await read_document(make_pdf("text"))


async def test_a_converter_has_limits(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    for code, seconds in (
        ("b = bytearray(3_000_000_000)", 20.0),
        (f"import pathlib; pathlib.Path({str(tmp_path / 'file')!r}).write_text('x')", 20.0),
        ("import time; time.sleep(600)", 0.5),
        ("import os; os.abort()", 20.0),
    ):
        program.write_text(f"{code}\nprint('{{}}')\n")
        assert await convert_in_process(program, {}, b"x" * 100_000, seconds=seconds) is None
    program.write_text("import sys\nprint(len(sys.stdin.buffer.read()))")
    assert await convert_in_process(program, {"a": "é"}, b"12345") == 21


async def test_a_document_of_endless_text_is_cut(space: Workspace) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Long")
    for _ in range(100):
        sheet.append(["x" * 30_000])
    found = await read(space, _saved(book), line=67)
    assert found.endswith("; not all of it: it is too long; lines 67 to 68, the end]")


def test_only_what_begins_as_a_document_is_taken_for_one() -> None:
    assert may_be_document(b"\r\n%PDF-1.4")
    assert not may_be_document(b"see %PDF-1.4")
    assert not may_be_document(b"")
