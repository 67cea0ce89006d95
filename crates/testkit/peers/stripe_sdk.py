"""The official Stripe client, doing what a plan says (see steps.py).

A step is {"do": "charges.create", "args": {…}}, or any other method of a service of the first API; "id" comes before the
arguments.
"""

from steps import drive
from stripe import RequestsClient, StripeClient


class Recording(RequestsClient):
    attempts: list

    def request(self, method, url, headers, post_data=None):
        try:
            content, status, answered = super().request(method, url, headers, post_data)
        except Exception as error:
            self.attempts.failed(error)
            raise
        self.attempts.answered(status, answered, content if isinstance(content, bytes) else content.encode())
        return content, status, answered


def call(plan, step, attempts):
    http = Recording(timeout=plan.get("timeout_s", 30))
    http.attempts = attempts
    made_with = {"base_addresses": {"api": plan["base_url"]}, "http_client": http}
    retries = step.get("retries", plan.get("retries"))
    if retries is not None:
        made_with["max_network_retries"] = retries
    client = StripeClient(plan.get("api_key", "sk_test_1"), **made_with)
    service, method = step["do"].split(".")
    options = {"headers": {**plan.get("headers", {}), **step.get("headers", {})}}
    if "key" in step:
        options["idempotency_key"] = step["key"]
    first = [step["id"]] if "id" in step else []
    made = getattr(getattr(client.v1, service), method)(*first, params=step.get("args", {}), options=options)
    if made["object"] == "list":
        return {"ids": [item["id"] for item in made["data"]]}
    return {"id": made["id"]}


drive(call)
