# SPDX-License-Identifier: Apache-2.0
"""Running the program under limits, and noting what it did wrong."""
import resource

import machines

LIMIT_S = 10
# Sanitizers keep shadow memory: their builds are held to the exit codes only.
MAX_KIB = 64 * 1024
ADDRESS_SPACE = 512 << 20

failures = []
cases = 0


def fail(name, text):
    failures.append(f"{name}: {text}")


def limited():
    if not machines.SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def run(name, *args):
    """Runs with limits; returns (status, stdout, stderr), or None after a failure."""
    global cases
    cases += 1
    try:
        status, out, err, kib = machines.run_measured(
            *args, timeout=LIMIT_S * (10 if machines.SANITIZED else 1), preexec_fn=limited
        )
    except TimeoutError:
        fail(name, f"{' '.join(args)}: did not end in {LIMIT_S} s")
        return None
    if not machines.SANITIZED and kib > MAX_KIB:
        fail(name, f"{' '.join(args)}: {kib} KiB of memory")
    if status < 0:
        fail(name, f"{' '.join(args)}: killed by signal {-status}")
        return None
    if b"Sanitizer" in err or b"runtime error" in err:
        fail(name, f"{' '.join(args)}: {err.decode(errors='replace')[:400]}")
    return status, out, err


def one_line(name, err):
    if err.count(b"\n") != 1 or not err.endswith(b"\n") or len(err) > 1100:
        fail(name, f"not one line: {err!r}")


def no_control_bytes(name, *texts):
    for text in texts:
        if any(b < 0x20 and b not in (0x09, 0x0A) or b == 0x7F for b in text):
            fail(name, f"control bytes reach the terminal: {text[:200]!r}")


def finish(name):
    """Exit status of the test."""
    for f in failures[:60]:
        print(f"FAIL {f}")
    print(f"{name}: {cases} runs, {len(failures)} failures")
    return 1 if failures else 0
