# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Answers Open Traffic Generator over gRPC: the service of its authors' protobuf, single messages and streams of pieces."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from snappi import otg_pb2_grpc

from liteprobe.host.base.errors import UsageError
from liteprobe.host.otg.api import OtgApi, error_message
from liteprobe.host.otg.messages import OtgError, pb
from liteprobe.host.otg.session import error_of
from liteprobe.host.serve.server import ServerSettings, is_loopback

T = TypeVar("T")
THREADS = 8
MESSAGE_MOST = 64 << 20  # Octets that come.
SENT_MOST = (1 << 31) - 1  # Of one message; a greater capture is a stream.
PIECE = 1 << 20
STATUS = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    503: grpc.StatusCode.UNAVAILABLE,
}


class OtgServicer(otg_pb2_grpc.OpenapiServicer):  # type: ignore[misc]
    """Answers each call by the same methods as HTTP does."""

    def __init__(self, api: OtgApi) -> None:
        self._api = api

    def SetConfig(self, request: Any, context: Any) -> Any:
        """Take a configuration."""
        return self._warned(context, pb.SetConfigResponse, lambda: self._api.set_config(request.config))

    def streamSetConfig(self, requests: Any, context: Any) -> Any:
        """Take a configuration in pieces."""
        return self._warned(context, pb.SetConfigResponse, lambda: self._api.set_config(_joined(requests, pb.Config())))

    def GetConfig(self, request: Any, context: Any) -> Any:
        """Return the configuration."""
        return pb.GetConfigResponse(config=_done(context, self._api.get_config))

    def streamGetConfig(self, request: Any, context: Any) -> Iterator[Any]:
        """Return the configuration in pieces."""
        return _pieces(_done(context, self._api.get_config))

    def UpdateConfig(self, request: Any, context: Any) -> Any:
        """Change flows."""
        return self._warned(context, pb.UpdateConfigResponse, lambda: self._api.update_config(request.config_update))

    def AppendConfig(self, request: Any, context: Any) -> Any:
        """Add flows."""
        return self._warned(context, pb.AppendConfigResponse, lambda: self._api.append_config(request.config_append))

    def DeleteConfig(self, request: Any, context: Any) -> Any:
        """Take flows away."""
        return self._warned(context, pb.DeleteConfigResponse, lambda: self._api.delete_config(request.config_delete))

    def SetControlState(self, request: Any, context: Any) -> Any:
        """Start or stop something."""
        return self._warned(
            context, pb.SetControlStateResponse, lambda: self._api.set_control_state(request.control_state)
        )

    def streamSetControlState(self, requests: Any, context: Any) -> Any:
        """Start or stop something; the message comes in pieces."""
        return self._warned(
            context,
            pb.SetControlStateResponse,
            lambda: self._api.set_control_state(_joined(requests, pb.ControlState())),
        )

    def SetControlAction(self, request: Any, context: Any) -> Any:
        """Ping from devices."""
        return self._acted(context, lambda: self._api.set_control_action(request.control_action))

    def streamSetControlAction(self, requests: Any, context: Any) -> Any:
        """Ping from devices; the message comes in pieces."""
        return self._acted(context, lambda: self._api.set_control_action(_joined(requests, pb.ControlAction())))

    def GetMetrics(self, request: Any, context: Any) -> Any:
        """Return metrics."""
        return pb.GetMetricsResponse(
            metrics_response=_done(context, lambda: self._api.get_metrics(request.metrics_request))
        )

    def streamGetMetrics(self, request: Any, context: Any) -> Iterator[Any]:
        """Return metrics in pieces."""
        return _pieces(_done(context, lambda: self._api.get_metrics(request.metrics_request)))

    def GetStates(self, request: Any, context: Any) -> Any:
        """Return states."""
        return pb.GetStatesResponse(
            states_response=_done(context, lambda: self._api.get_states(request.states_request))
        )

    def streamGetStates(self, request: Any, context: Any) -> Iterator[Any]:
        """Return states in pieces."""
        return _pieces(_done(context, lambda: self._api.get_states(request.states_request)))

    def GetCapture(self, request: Any, context: Any) -> Any:
        """Return a capture that fits into one message."""
        return pb.GetCaptureResponse(response_bytes=_done(context, lambda: self._captured(request.capture_request)))

    def streamGetCapture(self, request: Any, context: Any) -> Iterator[Any]:
        """Return a capture of any size."""
        for piece in _done(context, lambda: self._api.get_capture(request.capture_request)):
            yield pb.Data(datum=piece, chunk_size=len(piece))

    def GetVersion(self, request: Any, context: Any) -> Any:
        """Return versions."""
        return pb.GetVersionResponse(version=_done(context, self._api.get_version))

    # # #

    def _captured(self, request: Any) -> bytes:
        found, size = [], 0
        for piece in self._api.get_capture(request):
            size += len(piece)
            if size > SENT_MOST - PIECE:
                raise OtgError(
                    ["the capture is too large for a message: fetch it as a stream, or by HTTPS, or a slice of it"]
                )
            found.append(piece)
        return b"".join(found)

    def _acted(self, context: Any, act: Callable[[], Any]) -> Any:
        return pb.SetControlActionResponse(control_action_response=_done(context, act))

    def _warned(self, context: Any, kind: Callable[..., Any], act: Callable[[], Any]) -> Any:
        return kind(warning=_done(context, act))


def _done(context: Any, act: Callable[[], T]) -> T:
    """Return what comes of a request; an error ends the call with its JSON as the details."""
    try:
        return act()
    except Exception as error:
        found = error_of(error)
        status = STATUS.get(found.code, grpc.StatusCode.INTERNAL)
        details = error_message(found)
        details.code = status.value[0]
        context.abort(status, json_format.MessageToJson(details, preserving_proto_field_name=True, indent=None))
        raise AssertionError("abort raises") from None


def _spoilt(error: DecodeError) -> OtgError:
    return OtgError([f"this can't be read as a message of the models: {error}"])


class MalformedRequests(grpc.ServerInterceptor):  # type: ignore[misc]
    """Answers a request that can't be read with an error of the models; gRPC would call it a fault of the server."""

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Return the handler of a call, which is given a DecodeError in the place of a request that can't be read."""
        handler = continuation(details)
        if handler is None:
            return None
        ends = ("stream" if handler.request_streaming else "unary", "stream" if handler.response_streaming else "unary")
        act = getattr(handler, "_".join(ends))

        def read(content: bytes) -> Any:
            try:
                return handler.request_deserializer(content)
            except DecodeError as error:
                return error

        def call(request: Any, context: Any) -> Any:
            if isinstance(request, DecodeError):
                return _done(context, partial(_raise, _spoilt(request)))
            return act(request, context)

        return getattr(grpc, f"{'_'.join(ends)}_rpc_method_handler")(call, read, handler.response_serializer)


def _raise(error: OtgError) -> None:
    raise error


def _joined(requests: Any, message: Message) -> Any:
    content = bytearray()
    for piece in requests:
        if isinstance(piece, DecodeError):
            raise _spoilt(piece)
        content += piece.datum
        if len(content) > MESSAGE_MOST:
            raise OtgError([f"the message has more than {MESSAGE_MOST:,} octets"])
    try:
        message.ParseFromString(bytes(content))
    except DecodeError as error:
        raise OtgError([f"this is no {message.DESCRIPTOR.name} of the models: {error}"]) from None
    return message


def _pieces(message: Message) -> Iterator[Any]:
    content = message.SerializeToString()
    for at in range(0, max(len(content), 1), PIECE):
        yield pb.Data(datum=content[at : at + PIECE], chunk_size=PIECE)


class GrpcServer:
    """Serves gRPC while the ``with`` block runs: with TLS where its address is of a network.

    Raises UsageError when the port is taken.
    """

    def __init__(self, api: OtgApi, settings: ServerSettings) -> None:
        options = [
            ("grpc.max_receive_message_length", MESSAGE_MOST),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
        threads = ThreadPoolExecutor(THREADS, "grpc")
        self._server = grpc.server(threads, interceptors=[MalformedRequests()], options=options)
        otg_pb2_grpc.add_OpenapiServicer_to_server(OtgServicer(api), self._server)
        address = f"{f'[{settings.address}]' if ':' in settings.address else settings.address}:{settings.port}"
        try:
            if is_loopback(settings.address):
                self.port = self._server.add_insecure_port(address)
            else:
                assert settings.certificate and settings.key
                pair = (settings.key.read_bytes(), settings.certificate.read_bytes())
                self.port = self._server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        except RuntimeError:
            raise UsageError(
                f"{address} can't be served by gRPC, another program may have it: give another --grpc-port"
            ) from None

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.stop(1.0).wait(5.0)
