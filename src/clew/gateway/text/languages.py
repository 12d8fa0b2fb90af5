"""Names of programming languages in code fences: any other word is text."""

from __future__ import annotations

_NAMES = """
abap abnf ada adoc apache apacheconf apl applescript arduino arm armasm asciidoc asm assembly
astro avrasm awk bash basic bat batch bibtex bicep brainfuck bzl c c# c++ c++20 cfg clj cljs
clojure cmake cmd cob cobol coffee coffeescript common-lisp conf config console cpp cql cr crystal
cs csharp cshtml css csv cuda cue cxx cypher cython d dart dax delphi desktop diff djangohtml
docker dockerfile dot dotenv dts ebnf edn ejs el elisp elixir elm env erb erl erlang ex excel exs
f# f90 fish forth fortran fs fsharp gawk gcode gdscript gherkin git-commit git-rebase gitignore
gleam glsl gn go gohtml golang gradle graphql graphviz groovy h haml handlebars haskell haxe hbs
hcl hjson hlsl hpp hs html http hy ini ino ipynb ipython j java javadoc javascript jinja jinja2 jl
jq js json json5 jsonc jsonl jsonnet jsp jsx julia jupyter k kotlin kql ksh kt kts kusto latex
lean less liquid lisp llvm log lua m make makefile mako man markdown math mathematica matlab mbox
md mdx mediawiki mermaid meson mips mk ml mm mojo mustache mysql nasm ndjson nginx nim nix
nohighlight ntriples nu nushell objc objective-c objectivec objectpascal ocaml octave odin
openscad org pascal patch pcre pem perl pgsql php pig pl plain plaintext plantuml plpgsql plsql po
postcss postgres postgresql postscript powershell prisma prolog promql properties proto protobuf
ps ps1 psql pug puml puppet purescript pwsh py py3 pycon pyrex python python3 q qml qss r racket
rake raku rb regex regexp rego rest restructuredtext rkt rmd robot rs rst ruby rust sas sass scala
scheme scm scss sed sh shader shell shellscript smali smalltalk sml snippet sol solidity soy
sparql spl sql sqlite ssh-config stan starlark stata stylus svelte svg swift systemd systemverilog
t-sql tcl terraform tex text textile tf thrift toml ts tsql tsv tsx turtle twig txt typ typescript
typst udiff url v vala vb vba vbnet vbs velocity verilog vhdl vim viml vimscript vue wasm wat wgsl
x86asm xaml xhtml xml xonsh xpath xquery xsl xslt yaml yara yml zig zsh
"""

LANGUAGES = frozenset(_NAMES.split())


def is_language(word: str) -> bool:
    """Return whether a word names a language; case-insensitive."""
    return word.lower() in LANGUAGES
