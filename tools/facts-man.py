#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints peerpath-facts(7) as scdoc, from the table of facts: src/node/facts*.def.

usage: facts-man.py PROJECT-ROOT
The C preprocessor expands the table, so this reads exactly what the program is built from.
"""
import re
import subprocess
import sys

KINDS = {"PP_NODE": "node", "PP_GPU": "gpu", "PP_HCA": "hca", "PP_PORT": "port", "PP_LINK": "link",
         "PP_PAIR": "pair"}
TYPES = {"PP_STR": "text", "PP_INT": "integer", "PP_BOOL": "yes/no", "PP_VERSION": "version",
         "PP_LIST": "list"}


def rows(root):
    text = '#define F(id, key, kind, type, about, witness, doc, how) @ROW key | kind | type | about | doc | how\n'
    text += '#include "node/facts.def"\n'
    out = subprocess.run(["cc", "-E", "-P", "-I", f"{root}/src", "-x", "c", "-"], input=text,
                         capture_output=True, text=True, check=True).stdout
    for row in out.split("@ROW")[1:]:
        yield [re.sub(r'"\s*"', "", f.strip()).strip('"') for f in row.split(" | ")]


def escape(text):
    return re.sub(r"([\\*_`<\[#])", r"\\\1", text)


def main():
    print("peerpath-facts(7)\n\n# NAME\n\npeerpath-facts - what peerpath observes of a node\n")
    print("# DESCRIPTION\n\nA fact belongs to an object: the node, a gpu, an hca, a port, a link or a pair of gpu and hca. A fact that "
          "could not be observed is unknown, with its reason. *peerpath identity --facts* lists all of a node; rules compare "
          "them (*peerpath-rules*(5)).\n")
    kind = None
    for key, of, type_, about, doc, how in sorted(rows(sys.argv[1]), key=lambda r: (list(KINDS).index(r[1]), r[0])):
        if of != kind:
            kind = of
            print(f"# FACTS OF A {KINDS[kind].upper()}\n")
        print(f"*{escape(key)}* ({TYPES[type_]}, {about[3:].lower()})\n\t{escape(doc)}. When unknown: {escape(how)}.\n")
    print("# SEE ALSO\n\n*peerpath*(1), *peerpath-rules*(5)")


if __name__ == "__main__":
    main()
