"""A connection of Google's clients to the server of the tests."""

import grpc
from google.protobuf import json_format


def connect_to(address):
    """Return a `connect` for another process, from the address of a server."""

    def connect(service, region):
        channel = grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)])
        return service(transport=service.get_transport_class("grpc")(channel=channel))

    return connect


def as_json(message):
    return json_format.MessageToDict(type(message).pb(message))


def serialized(message):
    if hasattr(type(message), "pb"):
        message = type(message).pb(message)
    return message.SerializeToString()
