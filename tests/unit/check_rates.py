#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is what docs/compare.md says of wrong answers, and of power, what 2,000 comparisons a row give?

usage: check_rates.py COMMAND PAGE            checks
       check_rates.py COMMAND PAGE --write    puts the tables into the page
"""
import pathlib
import re
import subprocess
import sys

BEGIN, END = "<!-- rates: made by tests/unit/comparison_rates -->\n", "<!-- end of rates -->\n"


def rows(text):
    return [[c.strip() for c in line.strip("|\n ").split("|")] for line in text.splitlines() if line.startswith("|")]


def number(cell):
    found = re.fullmatch(r"([0-9.]+) %", cell)
    return float(found[1]) if found else None


def main():
    command, page = sys.argv[1], pathlib.Path(sys.argv[2])
    made = subprocess.run([command], capture_output=True, text=True, check=True).stdout
    head, _, rest = page.read_text().partition(BEGIN)
    said, _, tail = rest.partition(END)
    if "--write" in sys.argv:
        page.write_text(head + BEGIN + made + END + tail)
        return 0
    want, have, faults = rows(made), rows(said), []
    if len(want) != len(have) or len(want) < 20:
        faults.append(f"{len(want)} rows are made, {len(have)} are in {page}")
    for a, b in zip(want, have):
        for x, y in zip(a, b):
            # another libm may turn one comparison of 2,000
            same = x == y if number(x) is None else number(y) is not None and abs(number(x) - number(y)) <= 0.3
            if not same:
                faults.append(f"{a}: the page has {b}")
    # 5 % of 2,000, and none to speak of beyond a margin
    wrong = [r for r in want if len(r) == 5 and r[2] in ("normal", "skewed")]
    if len(wrong) != 12:
        faults.append(f"{len(wrong)} rows without a difference")
    for r in wrong:
        if number(r[3]) > 5.3 or number(r[4]) > 0.1:
            faults.append(f"found where nothing differs: {r}")
    print("\n".join(faults) or f"{len(want)} rows as in {page.name}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
