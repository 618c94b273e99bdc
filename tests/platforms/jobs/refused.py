"""The admission of a pod by the API server."""


class Refused(Exception):
    """A pod that the API server refused."""


def admit(server, owner, reason, name, spec):
    """Raise Refused, with an event about the owner of a pod, if the server refuses the pod."""
    why = server.admission(name, spec)
    if why:
        of_pod = "" if why.startswith("admission webhook") else f'pods "{name}" is forbidden: '
        server.warn(owner, reason, f"Error creating: {of_pod}{why}")
        raise Refused
