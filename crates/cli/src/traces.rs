//! Where spans go, from the policy and OpenTelemetry's own variables.

use crate::config::Otel;
use crate::context::Context;
use anyhow::Context as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use semel_core::policy::Policy;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::telemetry::{Collector, Exporting, Traces};
use std::sync::Arc;

/// The path of a collector, below its address.
const PATH: &str = "/v1/traces";

/// Begins to send spans, if somebody said where to. Within a runtime. A wrong address is said and costs spans alone:
/// the variables are often set for other programs.
pub fn started(context: &Context, policy: &Policy) -> Option<(Arc<Traces>, Exporting)> {
    start(&context.environment.otel, policy).unwrap_or_else(|error| {
        context.output.warn(format_args!("semel: there will be no spans: {error:#}"));
        None
    })
}

fn start(otel: &Otel, policy: &Policy) -> anyhow::Result<Option<(Arc<Traces>, Exporting)>> {
    if otel.disabled {
        return Ok(None);
    }
    let below = |base: &String| format!("{}{PATH}", base.trim_end_matches('/'));
    let from_environment = otel.traces_endpoint.clone().or_else(|| otel.endpoint.as_ref().map(below));
    let Some(url) = from_environment.or_else(|| policy.serve.otlp.as_ref().map(below)) else {
        return Ok(None);
    };
    // The operator wrote the address and means it: collectors stand in private networks.
    let target = Target::parse(&url).context("the address of the OTLP collector")?.with_private(true);
    let collector = Collector {
        client: Client::to(target)?,
        headers: headers(otel.headers.as_deref()).context("OTEL_EXPORTER_OTLP_HEADERS")?,
        service: otel.service.clone().unwrap_or_else(|| "semel".to_owned()),
    };
    Ok(Some(Traces::start(collector)))
}

/// `name=value,name=value`, with values that may be percent-encoded.
fn headers(text: Option<&str>) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in text.unwrap_or_default().split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').context("a header is name=value")?;
        let name: HeaderName = name.trim().parse()?;
        let mut value = HeaderValue::from_str(&decoded(value.trim()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if digit(*high).is_some() && digit(*low).is_some() => {
                bytes.push(digit(*high).unwrap_or_default() << 4 | digit(*low).unwrap_or_default());
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_the_standard_writes_them() {
        let read = headers(Some("api-key=a%20b, x=1")).unwrap();
        assert_eq!((&read["api-key"], &read["x"]), (&"a b".parse().unwrap(), &"1".parse().unwrap()));
        assert!(headers(Some("nothing")).is_err() && headers(Some("a b=1")).is_err());
        assert!(headers(None).unwrap().is_empty());
    }
}
