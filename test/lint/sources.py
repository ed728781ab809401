# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""sources - reads C sources as text, for checks: a definition begins in the first column, and its brace is alone on a
line."""
import os
import re

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
ROOTS = ('common', 'dapl', 'dat', 'dat1', 'net')


def text_of(path):
    """Without comments, strings and lines of the preprocessor."""
    with open(path, encoding='utf-8') as file:
        text = re.sub(r'/\*.*?\*/', ' ', file.read(), flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r'^[ \t]*#(.*\\\n)*.*$', '', text, flags=re.M)


def without_bodies(text):
    while '{' in text:
        text, n = re.subn(r'\{[^{}]*\}', ';', text)
        if not n:
            break
    return text


def files(ending):
    for root in ROOTS:
        for path, _, names in os.walk(os.path.join(TOP, root)):
            for name in sorted(names):
                if name.endswith(ending):
                    yield os.path.relpath(os.path.join(path, name), TOP)


def definitions(source):
    for head in re.findall(r'^([A-Za-z_][^;{}]*)\n\{', text_of(os.path.join(TOP, source)), re.M):
        if not re.search(r'\bstatic\b', head):
            yield from re.findall(r'\b(?!__attribute__)(\w+)\(', head)
