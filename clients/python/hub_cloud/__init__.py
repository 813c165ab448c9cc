"""What the generated client (hub_cloud_client) does not have: clients by credential, and live streams that resume."""

import datetime
import email.utils
import json
import time
from collections.abc import Iterator
from typing import TypeVar

import httpx
from hub_cloud_client import AuthenticatedClient
from hub_cloud_client.api.tenant_streams import streams_ble_events
from hub_cloud_client.models import BleEventResponse, Problem

__all__ = ["HubError", "connect", "follow_events", "ok"]

T = TypeVar("T")

# What may succeed later.
_TEMPORARY = {408, 429, 502, 503, 504, 507}
_LONGEST_PAUSE = 15.0
# The service is never silent for as long.
_SILENCE = 45.0
_MAX_EVENT_CHARS = 16 * 1024 * 1024


class HubError(Exception):
    """A refusal of the service. Branch on `code`, never on the message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def connect(url: str, *, api_key: str | None = None, token: str | None = None) -> AuthenticatedClient:
    """A client with an API key, or with the access token of a person."""
    if (api_key is None) == (token is None):
        raise ValueError("give either api_key or token")
    timeout = httpx.Timeout(_SILENCE)
    if api_key is not None:
        return AuthenticatedClient(url, token=api_key, prefix="", auth_header_name="X-API-Key", timeout=timeout)
    assert token is not None
    return AuthenticatedClient(url, token=token, timeout=timeout)


def ok(answer: T | Problem | None) -> T:
    """The answer of a call; its problem as an exception."""
    if isinstance(answer, Problem):
        raise HubError(0, answer.code, answer.message)
    if answer is None:
        raise HubError(0, "UNKNOWN", "the answer has no body that is described")
    return answer


def follow_events(
    client: AuthenticatedClient, tenant: str, *, last_event_id: datetime.datetime | None = None
) -> Iterator[BleEventResponse]:
    """The BLE events of a tenant as they are received, or those after one that is known. A lost connection is resumed
    after the last event: none is lost, none comes twice. What cannot get better by waiting is raised."""
    last_id = None if last_event_id is None else last_event_id.isoformat()
    pause = 0.25
    while True:
        # The generated client has no streams: httpx reads the one it describes.
        request = streams_ble_events._get_kwargs(x_tenant_uuid=tenant)
        headers = dict(request.pop("headers", {}))
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        asked = None
        try:
            with client.get_httpx_client().stream(**request, headers=headers) as response:
                if not response.is_success:
                    response.read()
                    error = _error(response)
                    if error.status not in _TEMPORARY:
                        raise error
                    asked = response.headers.get("retry-after")
                else:
                    # Where the stream begins is known before its first event.
                    last_id = last_id or _began(response.headers.get("date"))
                    pause = 0.25
                    for event_id, data in _events(response):
                        last_id = event_id
                        yield BleEventResponse.from_dict(json.loads(data))
                    # The service ends a stream after some minutes: it goes on at once.
                    continue
        except httpx.TransportError:
            pass
        time.sleep(min(float(asked) if asked and asked.isdigit() else pause, _LONGEST_PAUSE))
        pause = min(pause * 2, _LONGEST_PAUSE)


def _error(response: httpx.Response) -> HubError:
    try:
        problem = Problem.from_dict(response.json())
        return HubError(response.status_code, problem.code, problem.message)
    except (ValueError, KeyError, TypeError):
        return HubError(response.status_code, "UNKNOWN", f"status {response.status_code}")


def _began(date: str | None) -> str | None:
    try:
        return None if date is None else email.utils.parsedate_to_datetime(date).isoformat()
    except ValueError:
        return None


def _events(response: httpx.Response) -> Iterator[tuple[str, str]]:
    text = ""
    for chunk in response.iter_text():
        text += chunk
        while "\n\n" in text:
            block, _, text = text.partition("\n\n")
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
            if "id" in fields and "data" in fields:
                yield fields["id"], fields["data"]
        if len(text) > _MAX_EVENT_CHARS:
            raise HubError(0, "UNKNOWN", "an event of the stream is too large")
