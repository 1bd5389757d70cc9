#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is for Kubernetes, without a cluster: the files hold what its API, node feature discovery and node problem
detector require; the Containerfile's commands run in a Debian root; and what the DaemonSet runs does its work in it
under just the capabilities and mounts that it asks for.

Sources: Kubernetes' API reference and validation (apps/v1 DaemonSet, container securityContext), NFD's customization guide,
NPD's pkg/custompluginmonitor/types. The judges of the last part are the kernel and the files that are left.

usage: kubernetes.py PROJECT-ROOT BUILD
"""
import fnmatch
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from debroot import expect, finish, fresh, inside, must, need, packages, run, skip

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
FILES = ROOT / "data/kubernetes"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
# include/uapi/linux/capability.h
CAPABILITIES = {"IPC_LOCK": 14, "SYS_ADMIN": 21, "SYSLOG": 34}


def labels(where, pairs):
    for key, value in pairs.items():
        expect(KEY.fullmatch(key) and isinstance(value, str) and VALUE.fullmatch(value), where, key, value)


def daemonset(doc):
    expect(doc["apiVersion"] == "apps/v1" and doc["kind"] == "DaemonSet", "kind")
    expect(NAME.fullmatch(doc["metadata"]["name"]), "name")
    template = doc["spec"]["template"]
    labels("labels", template["metadata"]["labels"])
    match = doc["spec"]["selector"]["matchLabels"]
    expect(match and match.items() <= template["metadata"]["labels"].items(), "selector does not match the template")
    pod = template["spec"]
    expect(pod.get("restartPolicy", "Always") == "Always", "restartPolicy of a DaemonSet")
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for term in terms:
        for e in term["matchExpressions"]:
            expect(e["operator"] == "In" and e["values"], "node affinity", e)
            for value in e["values"]:
                labels("node affinity", {e["key"]: value})
    for bad in ("hostPID", "hostIPC", "serviceAccountName"):
        expect(bad not in pod, bad)
    expect(pod["automountServiceAccountToken"] is False, "a token of the API server")
    (container,) = pod["containers"]
    expect(NAME.fullmatch(container["name"]) and container["image"], "container")
    context = container["securityContext"]
    expect(context["privileged"] is False and context["readOnlyRootFilesystem"] is True, "security context")
    expect(context["capabilities"]["drop"] == ["ALL"], "capabilities are not dropped")
    # Validation refuses the two together; names stand without CAP_.
    expect(context.get("allowPrivilegeEscalation") is not False, "SYS_ADMIN and allowPrivilegeEscalation: false")
    expect(set(context["capabilities"]["add"]) == set(CAPABILITIES), context["capabilities"]["add"])
    limits = container["resources"]["limits"]
    for name, amount in limits.items():
        expect("/" not in name or re.fullmatch(r"[1-9]\d*", amount), "extended resources are whole numbers", name, amount)
    volumes = {v["name"]: v["hostPath"] for v in pod["volumes"]}
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    expect(set(volumes) == set(mounts), "volumes and mounts", volumes, mounts)
    for name, mount in mounts.items():
        expect(mount["mountPath"].startswith("/") and NAME.fullmatch(name), mount)
        expect(volumes[name]["type"] in ("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate"), volumes[name])
        expect(mount.get("readOnly") is True or name == "features", "writable", name)
    expect(volumes["features"]["path"] == "/etc/kubernetes/node-feature-discovery/features.d", "where NFD looks")
    return container


def rule(doc, written):
    """@written: the labels that a feature file really has."""
    expect(doc["apiVersion"] == "nfd.k8s-sigs.io/v1alpha1" and doc["kind"] == "NodeFeatureRule", "kind")
    for entry in doc["spec"]["rules"]:
        expect(entry["name"], "a rule needs a name")
        labels("labels of a rule", entry.get("labels", {}))
        for taint in entry.get("taints", []):
            expect(taint["effect"] in ("NoSchedule", "PreferNoSchedule", "NoExecute"), taint)
            labels("taint", {taint["key"]: taint["value"]})
        for term in entry["matchFeatures"]:
            expect(term["feature"] == "local.label", term)
            for key, match in term["matchExpressions"].items():
                expect(key in written, "no such label is written:", key)
                expect(match["op"] in ("In", "NotIn", "Exists", "DoesNotExist", "IsTrue"), match)
                expect(set(match["value"]) <= {"pass", "degraded", "fail", "unknown"}, match)
    tainted = [v for r in doc["spec"]["rules"] if "taints" in r for t in r["matchFeatures"]
               for m in t["matchExpressions"].values() for v in m["value"]]
    expect(tainted == ["fail"], "only a failed gate taints", tainted)


def seconds(text):
    (number, unit), = re.findall(r"^(\d+)(s|m|h)$", text)
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def detector(doc):
    """What NPD's ApplyConfiguration() and Validate() ask for, and nothing that its types do not have."""
    expect(set(doc) <= {"plugin", "pluginConfig", "source", "conditions", "rules", "metricsReporting"}, set(doc))
    expect(doc["plugin"] == "custom" and doc["source"], "plugin, source")
    config = doc["pluginConfig"]
    expect(set(config) <= {"invoke_interval", "timeout", "max_output_length", "concurrency",
                           "enable_message_change_based_condition_update", "skip_initial_status"}, set(config))
    conditions = {c["type"] for c in doc["conditions"]}
    for c in doc["conditions"]:
        expect(set(c) == {"type", "reason", "message"}, c)
        # Kubernetes: reasons are CamelCase.
        expect(re.fullmatch(r"[A-Z][A-Za-z]*", c["reason"]) and re.fullmatch(r"[A-Z][A-Za-z]*", c["type"]), c)
    for r in doc["rules"]:
        expect(set(r) <= {"type", "condition", "reason", "path", "args", "timeout"}, set(r))
        expect(r["type"] in ("permanent", "temporary"), r["type"])
        expect(r["type"] != "permanent" or r["condition"] in conditions, "no default condition", r)
        expect(seconds(r["timeout"]) <= seconds(config["timeout"]), "a rule's timeout is longer than the global one")
        deadline = int(r["args"][r["args"].index("--deadline") + 1])
        expect(deadline + 1 < seconds(r["timeout"]), "it would be killed before its verdict")
        expect(not set(r["reason"]) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), r["reason"])
    return doc["rules"][0], config["max_output_length"]


def containerfile(text):
    """Its instructions, in order; a continued line is one."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [line.split(None, 1) for line in joined.splitlines()]


def image(root, debs):
    """Runs the Containerfile's instructions in the root; returns its environment and what it starts."""
    env, start, command = {}, [], []
    for word, rest in containerfile((FILES / "Containerfile").read_text()):
        if word == "FROM":
            expect("debian:bookworm" in rest, "another base than the one that is here", rest)
        elif word == "COPY":
            pattern, to = rest.split()
            for deb in debs.values():
                if fnmatch.fnmatch(deb.name, pattern):
                    shutil.copy(deb, f"{root}{to}")
        elif word == "RUN":
            done = inside(root, rest)
            expect(done.returncode == 0, "RUN", done.stdout[-800:], done.stderr[-800:])
        elif word == "ENV":
            env.update(item.split("=", 1) for item in shlex.split(rest))
        elif word == "ENTRYPOINT":
            start = json.loads(rest)
        elif word == "CMD":
            command = json.loads(rest)
        else:
            expect(False, "not known:", word)
    return env, start + command


# As a container's runtime: the root and /sys read-only, an own /proc, the listed mounts, and no capability but the listed.
POD = r'''
set -e
root=$1 features=$2 script=$3 keep=$4
mount --bind "$root" "$root"
mkdir -p "$root/features.d" "$root/boot"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -o remount,bind,ro "$root/sys"
mount --bind "$features" "$root/features.d"
mount --bind /boot "$root/boot" && mount -o remount,bind,ro "$root/boot"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --bounding-set="$keep" --inh-caps=-all --ambient-caps=-all /bin/sh -c "$script"
'''


def pod(root, features, script, caps, env):
    keep = ",".join(["-all"] + [f"+{c.lower()}" for c in caps])
    return subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", POD, "pod", root, features, script, keep],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **env})


def ask(root, features, script, caps, env):
    p = pod(root, features, script, caps, env)
    out, err = p.communicate(timeout=120)
    return p.returncode, out, err


def privileges(root, features, caps, env):
    mask = sum(1 << CAPABILITIES[c] for c in caps)
    _, out, err = ask(root, features, "sed -n 's/^CapEff:.//p' /proc/self/status", caps, env)
    expect(int(out or "0", 16) == mask, "capabilities", out, err)
    status, out, err = ask(root, features, "touch /usr/x /sys/x /boot/x /x", caps, env)
    expect(status != 0 and not (root / "usr/x").exists() and err.count("Read-only file system") == 4, "writable", err)
    # Why SYS_ADMIN: the kernel shows 64 bytes of config space to others, whoever owns the file.
    functions = sorted(pathlib.Path("/sys/bus/pci/devices").glob("*/config"))
    if not functions:
        print("not looked at: no PCI here")
        return
    size = f"cat {functions[0]} | wc -c"
    with_it, without = (int(ask(root, features, size, c, env)[1]) for c in (caps, [c for c in caps if c != "SYS_ADMIN"]))
    expect(with_it > 64 and without == 64, "config space", with_it, without)
    print(f"config space: {with_it} bytes with SYS_ADMIN, {without} without")


def work(root, features, container, caps, env):
    """The DaemonSet's own command, until it has written its labels; then the end of a pod."""
    expect(container["command"] == ["/bin/sh", "-c"] and len(container["args"]) == 1, "command", container["command"])
    p = pod(root, features, container["args"][0], caps, env)
    end = time.monotonic() + 60
    file = features / "peerpath"
    while not file.exists() and time.monotonic() < end and p.poll() is None:
        time.sleep(0.1)
    expect(file.exists() and p.poll() is None, "labels are written, and it goes on", p.poll())
    # The first process of the pod's namespace is what kubelet ends.
    shell = run("pgrep", "-P", p.pid, "sh").stdout.split() or run("pgrep", "-P", p.pid).stdout.split()
    for pid in shell:
        os.kill(int(pid), 15)
    try:
        out, err = p.communicate(timeout=30)
        expect(p.returncode == 0, "ends when it is told to", p.returncode, err)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        expect(False, "does not end when it is told to", out, err)
    expect(len(out.splitlines()) == 1 and len(out) <= 81, "one line for the pod's log", out)
    text = file.read_text(encoding="ascii")
    expect([f.name for f in features.iterdir()] == ["peerpath"] and len(text) < 64 << 10, "features.d", list(features.iterdir()))
    written = dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    expect("+expiry-time=" in text.splitlines()[0] and written["peerpath.io/verdict"] in out, text, out)
    labels("written", written)
    return written


def main():
    need("debootstrap", "dpkg-buildpackage", "dh", "unshare", "setpriv", "pgrep")
    try:
        import yaml
    except ImportError:
        skip("no python3-yaml: the files cannot be read as Kubernetes reads them")
    container = daemonset(yaml.safe_load((FILES / "daemonset.yaml").read_text()))
    condition, most = detector(json.loads((FILES / "peerpath-npd.json").read_text()))
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        root, features = tmp / "root", tmp / "features.d"
        fresh(BUILD, root)
        features.mkdir()
        if inside(root, "apt-get -q update").returncode:
            skip("apt cannot reach its mirror from a fresh root")
        env, start = image(root, packages(ROOT, BUILD, tmp))
        caps = container["securityContext"]["capabilities"]["add"]
        privileges(root, features, caps, env)
        status, out, err = ask(root, features, shlex.join(start), caps, env)
        expect(status in (0, 1, 2) and "overall" in out, "the image's own command", status, out[-300:], err[-300:])
        status, out, err = ask(root, features, shlex.join([condition["path"], *condition["args"]]), caps, env)
        expect(status in (0, 1, 2) and out.count("\n") == 1 and len(out.rstrip("\n").encode()) <= most, "NPD's rule", status, out, err)
        written = work(root, features, container, caps, env)
        rule(yaml.safe_load((FILES / "nodefeaturerule.yaml").read_text()), written)
        shutil.rmtree(root / "features.d", ignore_errors=True)
    return finish("kubernetes")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
