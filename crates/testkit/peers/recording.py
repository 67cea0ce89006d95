"""A transport for the SDKs that stand on httpx2: it keeps what they saw, byte for byte."""

import hashlib

import httpx2


class Recording(httpx2.BaseTransport):
    def __init__(self, attempts) -> None:
        self.attempts, self.inner = attempts, httpx2.HTTPTransport()

    def handle_request(self, request):
        try:
            response = self.inner.handle_request(request)
        except Exception as error:
            self.attempts.failed(error)
            raise
        seen = self.attempts.answered(response.status_code, response.headers)
        stream = Hashed(response.stream, seen)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    def close(self) -> None:
        self.inner.close()


class Hashed(httpx2.SyncByteStream):
    def __init__(self, stream, seen) -> None:
        self.stream, self.seen = stream, seen

    def __iter__(self):
        digest = hashlib.sha256()
        try:
            for chunk in self.stream:
                digest.update(chunk)
                self.seen["body_sha256"] = digest.hexdigest()
                yield chunk
        except Exception as error:
            self.seen["error"] = type(error).__name__
            raise

    def close(self) -> None:
        self.stream.close()


def client_options(plan, attempts) -> dict:
    """What both SDKs are made with."""
    http = httpx2.Client(transport=Recording(attempts), timeout=plan.get("timeout_s", 30))
    options = {"base_url": plan["base_url"], "http_client": http, "default_headers": plan.get("headers", {})}
    if plan.get("retries") is not None:
        options["max_retries"] = plan["retries"]
    return options


def extra_headers(step) -> dict:
    named = {"Idempotency-Key": step["key"]} if "key" in step else {}
    return {**named, **step.get("headers", {})}
