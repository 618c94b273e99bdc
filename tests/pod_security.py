"""The Pod Security Standard `restricted`, as the API server's admission checks it.

The rules are those that Kubernetes publishes as "Pod Security Standards", for Linux pods;
`restricted` contains those of `baseline`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
}


def violations(pod: dict[str, Any]) -> list[str]:
    """Return the violations of the standard in the spec of a pod."""
    return [*_of_pod(pod), *(found for each in _containers(pod) for found in _of(each, pod))]


def refusal(pod: dict[str, Any]) -> str | None:
    """Return the message of a namespace that enforces the standard; None: no violation."""
    found = violations(pod)
    return f'violates PodSecurity "restricted:latest": {", ".join(found)}' if found else None


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return [each for kind in kinds for each in pod.get(kind, [])]


def _of_pod(pod: dict[str, Any]) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"host namespaces ({field}=true)"
    for volume in pod.get("volumes", []):
        for kind in set(volume) - {"name"} - _VOLUMES:
            yield f'restricted volume types (volume "{volume["name"]}" uses "{kind}")'
    for sysctl in pod.get("securityContext", {}).get("sysctls", []):
        if sysctl["name"] not in _SYSCTLS:
            yield f"forbidden sysctls ({sysctl['name']})"


def _of(container: dict[str, Any], pod: dict[str, Any]) -> Iterator[str]:
    own, of_pod = container.get("securityContext", {}), pod.get("securityContext", {})
    both, name = {**of_pod, **own}, f'container "{container["name"]}"'
    if own.get("privileged"):
        yield f"privileged ({name} must not set securityContext.privileged=true)"
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"allowPrivilegeEscalation != false ({name})"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield f'unrestricted capabilities ({name} must set capabilities.drop=["ALL"])'
    for added in set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield f'unrestricted capabilities ({name} must not include "{added}")'
    if both.get("runAsNonRoot") is not True:
        yield f"runAsNonRoot != true (pod or {name})"
    for level in (of_pod, own):
        if level.get("runAsUser") == 0:
            yield f"runAsUser=0 ({name})"
        selinux = level.get("seLinuxOptions", {})
        if selinux.get("type", "") not in _SELINUX_TYPES or {"user", "role"} & set(selinux):
            yield f"seLinuxOptions ({name})"
        apparmor = level.get("appArmorProfile", {}).get("type", "RuntimeDefault")
        if apparmor not in ("RuntimeDefault", "Localhost"):
            yield f"forbidden AppArmor profile ({name})"
        if level.get("windowsOptions", {}).get("hostProcess"):
            yield f"hostProcess ({name})"
    if both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield f"seccompProfile (pod or {name})"
    if own.get("procMount", "Default") != "Default":
        yield f"procMount ({name})"
    for port in container.get("ports", []):
        if port.get("hostPort"):
            yield f"hostPort ({name} uses {port['hostPort']})"
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        for action in ("httpGet", "tcpSocket"):
            if container.get(probe, {}).get(action, {}).get("host"):
                yield f"probe or lifecycle host ({name})"
