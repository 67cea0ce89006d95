// The official Stripe client, doing what a plan says: the same steps as stripe_sdk.py.
//
// This SDK knows a host and a port, and no path before its own: a base URL with one needs a client that adds it, as here,
// and one with a host name of its own does not.

import { createHash } from "node:crypto";
import { lookup } from "node:dns";
import { Agent } from "node:http";
import { digest, drive, load } from "./steps.mjs";

const { default: Stripe } = await load("stripe");

class Recording {
  constructor(inner, base, more, attempts) {
    Object.assign(this, { inner, base, more, attempts });
  }

  getClientName() {
    return this.inner.getClientName();
  }

  async makeRequest(host, port, path, method, headers, data, protocol, timeout) {
    const all = { ...headers, ...this.more };
    let response;
    try {
      const { inner, base } = this;
      response = await inner.makeRequest(host, port, base + path, method, all, data, protocol, timeout);
    } catch (error) {
      this.attempts.push({ error: error.code ?? error.name });
      throw error;
    }
    const seen = { status: response.getStatusCode(), headers: response.getHeaders(), body_sha256: digest("") };
    this.attempts.push(seen);
    const read = response.toJSON.bind(response);
    response.toJSON = () => {
      const hash = createHash("sha256");
      response.getRawResponse().on("data", (chunk) => {
        seen.body_sha256 = hash.update(chunk).copy().digest("hex");
      });
      return read();
    };
    return response;
  }
}

// Not every system knows that such a name is this machine.
const agent = new Agent({
  lookup: (host, options, done) => lookup(host.endsWith(".localhost") ? "localhost" : host, options, done),
});

const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

async function call(plan, step, attempts) {
  const { protocol, hostname, port, pathname } = new URL(plan.base_url);
  const base = pathname === "/" ? "" : pathname;
  const more = { ...(plan.headers ?? {}), ...(step.headers ?? {}) };
  const client = new Stripe(plan.api_key ?? "sk_test_1", {
    host: hostname,
    port,
    protocol: protocol.replace(":", ""),
    timeout: (plan.timeout_s ?? 30) * 1000,
    ...((step.retries ?? plan.retries) != null ? { maxNetworkRetries: step.retries ?? plan.retries } : {}),
    httpClient: new Recording(Stripe.createNodeHttpClient(agent), base, more, attempts),
  });
  const [service, method] = step.do.split(".");
  const first = step.id ? [step.id] : [];
  const options = step.key ? { idempotencyKey: step.key } : {};
  const made = await client[camel(service)][camel(method)](...first, step.args ?? {}, options);
  return made.object === "list" ? { ids: made.data.map((item) => item.id) } : { id: made.id };
}

await drive(call);
