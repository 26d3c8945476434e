# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Answers Open Traffic Generator over HTTP.

Source: Open Traffic Generator models 1.61, api/api.yaml.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from liteprobe.host.base import extras
from liteprobe.host.otg.api import OtgApi, error_message, parsed
from liteprobe.host.otg.messages import OtgError, pb

with extras.named():
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

CONFIG_MOST = 32 << 20  # Octets of a configuration.
JSON, OCTETS = "application/json", "application/octet-stream"
SCALE_HEADER = "liteprobe-time-scale"


def json_of(message: Message) -> bytes:
    """Return a message as JSON: numbers of 64 bits are texts, as protobuf has them, and floats have a point.

    Clients read replies as YAML 1.1, where 1e+16 is a text.
    """
    return _text(json_format.MessageToDict(message, preserving_proto_field_name=True)).encode()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_text(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    text = json.dumps(value)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if isinstance(value, float) and mark and "." not in mantissa else text


def application(api: OtgApi) -> Starlette:
    """Return the application; other things than its paths get an error of Open Traffic Generator, too."""
    headers = {} if api.scale.factor == 1 else {SCALE_HEADER: f"{float(api.scale.factor):g}"}

    def answer(message: Message, status: int = 200) -> Response:
        return Response(json_of(message), status, headers, JSON)

    def failed(error: OtgError) -> Response:
        return answer(error_message(error), error.code)

    def posted(kind: Callable[[], Message], act: Callable[[Any], Any]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            try:
                _check_type(request.headers)
                message = parsed(_whole(kind, await request.body()), kind())
                found = await run_in_threadpool(act, message)
            except OtgError as error:
                return failed(error)
            if isinstance(found, Message):
                return answer(found)
            return StreamingResponse(found, 200, headers, OCTETS)

        return endpoint

    def asked(act: Callable[[], Message]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            try:
                return answer(await run_in_threadpool(act))
            except OtgError as error:
                return failed(error)

        return endpoint

    async def lost(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        return failed(
            OtgError([f"{request.method} {request.url.path[:200]}: there is no such request ({PATHS})"], status)
        )

    posts: list[tuple[str, str, Callable[[], Message], Callable[[Any], Any]]] = [
        ("/config", "POST", pb.Config, api.set_config),
        ("/config", "PATCH", pb.ConfigUpdate, api.update_config),
        ("/config/append", "PATCH", pb.ConfigAppend, api.append_config),
        ("/config/delete", "PATCH", pb.ConfigDelete, api.delete_config),
        ("/control/state", "POST", pb.ControlState, api.set_control_state),
        ("/control/action", "POST", pb.ControlAction, api.set_control_action),
        ("/monitor/metrics", "POST", pb.MetricsRequest, api.get_metrics),
        ("/monitor/states", "POST", pb.StatesRequest, api.get_states),
        ("/monitor/capture", "POST", pb.CaptureRequest, api.get_capture),
    ]
    gets: Mapping[str, Callable[[], Message]] = {"/config": api.get_config, "/capabilities/version": api.get_version}
    routes = [Route(path, posted(kind, act), methods=[method]) for path, method, kind, act in posts]
    routes += [Route(path, asked(act), methods=["GET"]) for path, act in gets.items()]
    return Starlette(routes=routes, exception_handlers={404: lost, 405: lost})


PATHS = "docs/otg.md has those that there are"


def _check_type(headers: Mapping[str, str]) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise OtgError([f"the Content-Type is {kind!a}: give {JSON}"], 415)


def _whole(kind: Callable[[], Message], content: bytes) -> bytes:
    """Return a list as the message that has it: in JSON what is appended, or deleted, is the list itself."""
    names = {pb.ConfigAppend: "config_append_list", pb.ConfigDelete: "config_delete_list"}
    name = names.get(kind)
    if name is None or not content.lstrip().startswith(b"["):
        return content
    return b'{"' + name.encode() + b'": ' + content + b"}"
