"""The Pod Security Standard `restricted`, as the API server's admission checks it.

A field or a kind of volume that the standard limits and that no pod of this project has is a
violation here, whatever its value.
"""

_VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
_OF_POD = ("hostNetwork", "hostPID", "hostIPC")
_OF_SECURITY_CONTEXT = ("appArmorProfile", "privileged", "procMount", "seLinuxOptions", "sysctls")


def violations(pod):
    """Return the violations of the standard in the spec of a pod."""
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    return [*_of_pod(pod), *(found for each in containers for found in _of(each, pod))]


def _of_pod(pod):
    yield from (f"host namespaces ({field}=true)" for field in _OF_POD if pod.get(field))
    for volume in pod.get("volumes", []):
        for kind in set(volume) - {"name"} - _VOLUMES:
            yield f'restricted volume types (volume "{volume["name"]}" uses "{kind}")'


def _of(container, pod):
    own, of_pod = container.get("securityContext", {}), pod.get("securityContext", {})
    both, name = {**of_pod, **own}, f'container "{container["name"]}"'
    yield from (f"{field} ({name})" for field in _OF_SECURITY_CONTEXT if both.get(field))
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"allowPrivilegeEscalation != false ({name})"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield f'unrestricted capabilities ({name} must set capabilities.drop=["ALL"])'
    for added in capabilities.get("add", []):
        yield f'unrestricted capabilities ({name} must not include "{added}")'
    if both.get("runAsNonRoot") is not True:
        yield f"runAsNonRoot != true (pod or {name})"
    if 0 in (own.get("runAsUser"), of_pod.get("runAsUser")):
        yield f"runAsUser=0 ({name})"
    if both.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"seccompProfile (pod or {name})"
    for port in container.get("ports", []):
        if port.get("hostPort"):
            yield f"hostPort ({name} uses {port['hostPort']})"
