//! The protocol's own HTTP headers.

use http::HeaderName;

pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The beginning of the headers that mirror single arguments.
pub const PARAM: &str = "mcp-param-";
