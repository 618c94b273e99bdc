"""Runs a container as Kubernetes runs a restricted pod, by crun: the root file system is read-only,
the process has no capabilities and gains none, and the default seccomp profile filters its calls.

/tmp is writable, as an emptyDir is, and so are the folders that the caller mounts.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROFILE = Path("/usr/share/containers/seccomp.json")
"""The default profile of Podman, from Debian's golang-github-containers-common."""
# Podman allows these calls, so that a container can run containers. The profile of containerd,
# which most clusters have, does not allow them without a capability.
_NOT_IN_CONTAINERD = {
    *("mount", "umount", "umount2", "pivot_root", "mount_setattr", "move_mount", "open_tree"),
    *("fsconfig", "fsmount", "fsopen", "fspick", "setns", "unshare"),
    *("add_key", "keyctl", "request_key", "reboot", "sethostname", "setdomainname", "syslog"),
}
# crun 1.8 requires cgroup 2 at this place, and many machines have it elsewhere or not at all. The
# mount is seen by this process and its children only.
_WITH_CGROUP = (
    *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
    'mount -t cgroup2 none /sys/fs/cgroup && exec crun --cgroup-manager=disabled "$@"',
    "crun",
)


def run(
    root: str,
    image_config: Mapping[str, Any],
    command: Sequence[str],
    name: str,
    bundle: Path,
    mounts: Mapping[str | Path, str | Path],
    environ: Mapping[str, str],
    timeout: float,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a root file system.

    Args:
      root: the folder with the file system.
      image_config: the `config` of the image: user, environment and working directory.
      bundle: an empty folder for the settings of the container.
      name, command, mounts, environ, timeout: see `image_machine.run_in_image`.
    """
    spec = specification(root, image_config, command, mounts, environ)
    (bundle / "config.json").write_text(json.dumps(spec))
    try:
        return subprocess.run(
            [*_WITH_CGROUP, "run", "--bundle", bundle, name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    finally:
        subprocess.run([*_WITH_CGROUP, "delete", "--force", name], capture_output=True)


def specification(
    root: str,
    image_config: Mapping[str, Any],
    command: Sequence[str],
    mounts: Mapping[str | Path, str | Path],
    environ: Mapping[str, str],
) -> dict[str, Any]:
    """Return the settings of the container in the format of OCI's runtime specification."""
    user, group = map(int, image_config["User"].split(":"))
    none: dict[str, list[str]] = {
        kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")
    }
    bound = {"/etc/hosts": "/etc/hosts", "/etc/resolv.conf": "/etc/resolv.conf", "/sys": "/sys"}
    nodes = ["nosuid", "strictatime", "mode=755", "size=65536k"]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": user, "gid": group},
            "args": list(command),
            "env": [*image_config["Env"], *(f"{key}={value}" for key, value in environ.items())],
            "cwd": image_config["WorkingDir"],
            "capabilities": none,
            "noNewPrivileges": True,
        },
        "root": {"path": root, "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": nodes},
            _mount("/dev/shm", "shm", "mode=1777", "size=65536k"),
            _mount("/tmp", "tmpfs", "mode=1777"),
            *(_bind(here, inside, "ro") for here, inside in bound.items()),
            *(_bind(here, inside, "rw") for here, inside in mounts.items()),
        ],
        "linux": {
            # The network is that of the machine, as it is for `buildah run --isolation chroot`.
            "namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts")],
            "seccomp": seccomp(json.loads(PROFILE.read_text())),
        },
    }


def seccomp(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile for a process without capabilities on x86_64, as strict as containerd's."""
    calls = [{"names": sorted(_NOT_IN_CONTAINERD), "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]
    for rule in profile["syscalls"]:
        only, never = rule.get("includes") or {}, rule.get("excludes") or {}
        if only.get("caps") or "amd64" not in only.get("arches", ["amd64"]):
            continue
        if "amd64" in never.get("arches", ()):
            continue
        names = [name for name in rule["names"] if name not in _NOT_IN_CONTAINERD]
        if not names:
            continue
        kept = {key: rule[key] for key in ("action", "errnoRet") if key in rule}
        calls.append({"names": names, **kept})
        if rule.get("args"):
            calls[-1]["args"] = rule["args"]
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile.get("defaultErrnoRet", 1),
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "syscalls": calls,
    }


def _mount(place: str, source: str, *options: str) -> dict[str, Any]:
    options = ("nosuid", "nodev", *options)
    return {"destination": place, "type": "tmpfs", "source": source, "options": list(options)}


def _bind(here: str | Path, inside: str | Path, access: str) -> dict[str, Any]:
    options = ["rbind", access]
    return {
        "destination": str(inside),
        "type": "bind",
        "source": str(here),
        "options": options,
    }
