#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A flame graph of what perf recorded: one SVG, no script in it, titles on hover.

usage: perf record -g ... ; perf script -F comm,ip,sym | flame.py TITLE > graph.svg

Width is the share of samples, height the depth of calls; siblings are sorted by name. Frames below a third
of a percent are left out.
"""
import html
import sys
import zlib

WIDTH, ROW, LEAST, DEPTH = 1200, 16, 1 / 300, 60


def stacks(lines):
    """Of each sample the names from the outermost call on, the program first."""
    program, names = None, []
    for line in lines:
        if not line.strip():
            if program:
                yield [program, *reversed(names)]
            program, names = None, []
        elif line[0].isspace():
            names.append(line.split(None, 1)[1].strip() if len(line.split(None, 1)) == 2 else "?")
        else:
            program = line.strip()
    if program:
        yield [program, *reversed(names)]


def tree(samples):
    root, count = {}, 0
    for stack in samples:
        node, count = root, count + 1
        for name in stack[:DEPTH]:
            entry = node.setdefault(name, [0, {}])
            entry[0] += 1
            node = entry[1]
    return root, count


def rects(node, count, x, depth, out):
    for name, (n, below) in sorted(node.items()):
        width = WIDTH * n / count
        if n / count >= LEAST:
            out.append((x, depth, width, name, n))
            rects(below, count, x, depth + 1, out)
        x += width


def color(name):
    """Warm, and the same for the same name."""
    h = zlib.crc32(name.encode())
    return f"rgb({205 + h % 50},{80 + (h >> 8) % 110},{(h >> 16) % 60})"


def main():
    root, count = tree(stacks(sys.stdin))
    if not count:
        sys.exit("flame.py: no samples; perf script -F comm,ip,sym writes them")
    boxes = []
    rects(root, count, 0, 0, boxes)
    rows = max(depth for _, depth, *_ in boxes) + 1
    height = (rows + 2) * ROW
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
          f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
          f'<text x="4" y="12">{html.escape(sys.argv[1])}: {count} samples</text>')
    for x, depth, width, name, n in boxes:
        y = height - (depth + 1) * ROW
        text = name if len(name) * 6.7 < width else name[:max(0, int(width / 6.7) - 1)]
        print(f'<g><title>{html.escape(name)} {100 * n / count:.1f} %</title><rect x="{x:.1f}" y="{y}" '
              f'width="{max(width - 0.3, 0.2):.1f}" height="{ROW - 1}" fill="{color(name)}"/>'
              f'<text x="{x + 2:.1f}" y="{y + 11}">{html.escape(text) if len(text) > 2 else ""}</text></g>')
    print("</svg>")


if __name__ == "__main__":
    main()
