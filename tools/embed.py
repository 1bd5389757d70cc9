#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file as a C array: embed.py FILE NAME OUT"""
import pathlib
import sys


def main() -> int:
    data = pathlib.Path(sys.argv[1]).read_bytes()
    name = sys.argv[2]
    rows = (", ".join(str(b) for b in data[i : i + 20]) for i in range(0, len(data), 20))
    text = (
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        f"/* Made of {pathlib.Path(sys.argv[1]).name}. */\n"
        "#include <stddef.h>\n\n"
        f"extern const unsigned char {name}[];\nextern const size_t {name}_len;\n\n"
        f"const unsigned char {name}[] = {{\n" + ",\n".join(rows) + ", 0};\n"
        f"const size_t {name}_len = {len(data)};\n"
    )
    pathlib.Path(sys.argv[3]).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
