//! The shape of `semel.toml`: which keys there are and what type each has. What they mean is `compile`'s matter.

use super::rule::{Again, CallerKey, Failure, KeyForm, OnDisconnect, Rulings, ScopeChoice, Unmarked};
use crate::class::Class;
use crate::normalise::Normaliser;
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct File {
    /// The version of this format: 1.
    pub version: Option<Spot<i64>>,
    /// `observe` only reports, `guard` is the default, `strict` takes every action but a read as consequential.
    pub mode: Option<Mode>,
    /// Where the ledger lies: a path, or `postgres://…`, `redis://…`, `etcd://…` for a server that many hosts share. `--ledger` and `SEMEL_LEDGER` come
    /// first.
    pub ledger: Option<String>,
    /// Shipped sets of rules, such as `pack:kubectl`. They come after the rules of this file.
    #[serde(default)]
    pub include: Vec<Spot<String>>,
    /// Settings for rules that do not say otherwise.
    #[serde(default)]
    pub defaults: Defaults,
    /// The rules. The first one that matches wins.
    #[serde(default)]
    pub rule: Vec<Spot<RuleTable>>,
    /// How long replies and facts are kept.
    #[serde(default)]
    pub retention: RetentionTable,
    /// HTTP APIs by name: what `semel serve` offers at `/p/NAME/`.
    #[serde(default)]
    pub upstream: Entries<Spot<UpstreamTable>>,
    /// What a pack says about the HTTP API that it is for. Only packs have one.
    #[schemars(skip)]
    pub preset: Option<Spot<PresetTable>>,
    /// The MCP servers that a pack is for. Only packs have one.
    #[schemars(skip)]
    pub server: Option<Spot<PackServerTable>>,
    /// MCP servers by name: what `semel serve` offers at `/mcp/NAME`.
    #[serde(default)]
    pub mcp: Entries<Spot<McpTable>>,
    /// How `semel serve` listens.
    #[serde(default)]
    pub serve: ServeTable,
    /// Who is told of doubts.
    pub notify: Option<Spot<NotifyTable>>,
    /// Prices of models, by name; a name may end in `*`.
    #[serde(default)]
    pub prices: Entries<Spot<PriceTable>>,
    /// Comparisons with the outside, by name: `semel reconcile NAME`.
    #[serde(default)]
    pub reconcile: Entries<ReconcileTable>,
}

/// Each key stands for the option of that name, which comes first if it is given too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { outside = \"bank.csv\", on = \"args.invoice=invoice\" }"
)]
pub struct ReconcileTable {
    /// Which argument equals which column: `args.invoice=invoice,args.amount=amount`.
    pub on: Option<String>,
    /// Only actions that contain this.
    pub action: Option<String>,
    /// A file with the rows.
    pub outside: Option<String>,
    /// A command that prints them.
    pub command: Option<String>,
    /// A listing over HTTP.
    pub http: Option<String>,
    /// How a page of it leads to the next.
    pub next: Option<String>,
    /// The environment variable with its bearer token.
    pub bearer_env: Option<String>,
    /// An SQLite file.
    pub sqlite: Option<String>,
    /// The URL of a PostgreSQL database, or the environment variable that holds it.
    pub postgres: Option<String>,
    /// The query of `sqlite` or `postgres`.
    pub query: Option<String>,
}

/// For a million tokens each, in whatever currency.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { input = 2.5, output = 10 }")]
pub struct PriceTable {
    /// A million tokens that are sent.
    pub input: Option<Spot<f64>>,
    /// A million tokens that are generated.
    pub output: Option<Spot<f64>>,
    /// A million tokens that are sent and read from the provider's cache; as `input` unless given.
    pub cache_read: Option<Spot<f64>>,
    /// A million tokens that are sent and written to the provider's cache; as `input` unless given.
    pub cache_write: Option<Spot<f64>>,
}

/// One MCP server: exactly one of `command` and `url`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { command = [\"server\"] }")]
pub struct McpTable {
    /// The program and its arguments, for a server on standard input and output.
    pub command: Option<Spot<Vec<String>>>,
    /// The address of a remote server.
    pub url: Option<Spot<String>>,
    /// Variables added to the environment of `command`.
    #[serde(default)]
    pub env: Entries<String>,
    /// The working directory of `command`.
    pub cwd: Option<Spot<String>>,
    /// Headers sent to `url`.
    #[serde(default)]
    pub headers: Entries<String>,
    /// Headers sent to `url`, with the environment variable that holds each value.
    #[serde(default)]
    pub headers_env: Entries<String>,
    /// The host of `url` may lead to a private address.
    pub private: Option<Spot<bool>>,
    /// The server's annotations may take protection away.
    pub trusted: Option<bool>,
    /// Listings say which tools are guarded.
    pub decorate: Option<bool>,
    /// Semel's own tools are offered beside the server's.
    pub tools: Option<bool>,
    /// Listings offer a dry run as an argument.
    pub dry_run_argument: Option<bool>,
    /// The run that calls belong to where they name none.
    pub run: Option<Spot<String>>,
}

/// How `semel serve` listens and reports.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ServeTable {
    /// Address and port: `127.0.0.1:7777` unless given.
    pub listen: Option<Spot<String>>,
    /// Needed for an address that other machines can reach.
    pub allow_remote: Option<bool>,
    /// HTTPS instead of HTTP: the files of its certificate and key.
    pub tls: Option<Spot<TlsTable>>,
    /// Origins that may call, such as `https://app.example.com`.
    #[serde(default)]
    pub allowed_origins: Vec<Spot<String>>,
    /// Host names that clients may use, besides this machine's own.
    #[serde(default)]
    pub allowed_hosts: Vec<Spot<String>>,
    /// Clients must show a token: true unless given. Only a local server can do without, with an agent's rights.
    pub require_token: Option<bool>,
    /// Who may read `/metrics`: an operator unless given.
    pub metrics: Option<MetricsFor>,
    /// Where spans go: an OTLP collector, such as `http://127.0.0.1:4318`.
    pub otlp: Option<Spot<String>>,
    /// The name that `[notify]` had when `semel serve` alone told anybody.
    #[schemars(skip)]
    pub webhook: Option<Spot<NotifyTable>>,
    /// How long sent calls may take to settle when the server stops: `25s` unless given.
    pub grace: Option<Spot<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricsFor {
    /// A token of scope operator.
    Operator,
    /// Everybody who can reach the server.
    Open,
}

/// Files in PEM form, relative to the policy's directory. Changed files are read again.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { certificate = \"cert.pem\", key = \"key.pem\" }")]
pub struct TlsTable {
    /// The server's certificate, then those that vouch for it.
    pub certificate: Option<Spot<String>>,
    /// Its private key, not encrypted, closed to other users.
    pub key: Option<Spot<String>>,
}

/// Who is told of each new doubt and each duplicate, at every door and in `semel run`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { command = [\"notify-me\"] }")]
pub struct NotifyTable {
    /// A program with its arguments, without a shell. It is started in the policy's directory and reads the message as JSON
    /// from its standard input.
    pub command: Option<Spot<Vec<String>>>,
    /// The address that messages are posted to.
    pub url: Option<Spot<String>>,
    /// The environment variable that holds the secret for `url`, `whsec_` and base 64 or any text.
    pub secret_env: Option<Spot<String>>,
    /// The host of `url` may lead to a private address.
    pub private: Option<Spot<bool>>,
}

/// One HTTP API.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { url = \"https://api.example.com\" }")]
pub struct UpstreamTable {
    /// Scheme, host and, if all paths begin with one, a path.
    pub url: Option<Spot<String>>,
    /// The pack whose preset and rules hold for it; found by the host unless given. `none` turns that off.
    pub preset: Option<Spot<String>>,
    /// The host in the names of its actions: the preset's, or that of `url`, unless given.
    pub service: Option<Spot<String>>,
    /// Stands for the address in the identity of calls, so that `url` may change. Two upstreams of one account are one;
    /// two at one address with different headers need it.
    pub account: Option<Spot<String>>,
    /// The model API that it speaks, if it is one: the preset's unless given.
    pub speaks: Option<Speaks>,
    /// Headers put into every request, in place of the client's.
    #[serde(default)]
    pub headers: Entries<String>,
    /// The same, with the environment variable that holds each value.
    #[serde(default)]
    pub headers_env: Entries<String>,
    /// The host of `url` may lead to a private address.
    pub private: Option<Spot<bool>>,
    /// The run that calls belong to where they name none.
    pub run: Option<Spot<String>>,
    /// How clients' idempotency keys are answered.
    #[serde(default)]
    pub keys: KeysTable,
}

/// How the MCP servers of a pack are recognised.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct PackServerTable {
    /// Packages, programs and images, without version.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Hosts, with or without the beginning of a path.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Short names that its rules match, beside those that contain the pack's.
    #[serde(default)]
    pub names: Vec<String>,
    /// The versions that its rules were written for; `cargo xtask packs` installs them.
    #[serde(default, rename = "tested")]
    _tested: Vec<serde::de::IgnoredAny>,
}

/// What a pack knows about an HTTP API.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct PresetTable {
    /// Stands for the host in the names of its actions.
    pub service: Option<Spot<String>>,
    /// Hosts by which it is recognised; `*` stands for anything but a slash.
    #[serde(default)]
    pub hosts: Vec<Spot<String>>,
    pub speaks: Option<Speaks>,
    /// What the API itself does against duplicates.
    pub helps: Option<Helps>,
    /// The same in a sentence, with its limits.
    pub note: Option<Spot<String>>,
    #[serde(default)]
    pub keys: KeysTable,
}

/// How a client's idempotency key is answered.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct KeysTable {
    /// The header in which clients send their key: `Idempotency-Key` unless given.
    pub header: Option<Spot<String>>,
    /// A regular expression that a whole key must match.
    pub pattern: Option<Spot<String>>,
    /// A guarded request without a key is refused.
    pub required: Option<bool>,
    /// Which upstream answers are repeated under the same key.
    pub stores: Option<Stores>,
    /// The meaning of 500 to 599.
    pub server_error: Option<ServerError>,
    /// The status for a key with another request: 422 unless given.
    pub drift_status: Option<Spot<i64>>,
    /// The status for a key whose request is still running: 409 unless given.
    pub in_flight_status: Option<Spot<i64>>,
    /// The status for a POST that has created something, where only the body of its reply is known: 201 unless given.
    pub created_status: Option<Spot<i64>>,
    /// How long a key answers repeats: for ever unless given.
    pub life: Option<Spot<String>>,
}

/// A shape of model APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaks {
    /// Chat completions and responses.
    Openai,
    /// Messages.
    Anthropic,
    /// No model API.
    Nothing,
}

/// What an API does against duplicates by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Helps {
    /// It honours an idempotency key.
    Key,
    /// It honours an id that the client chooses.
    ClientId,
    /// Some of its operations do.
    Partly,
    /// Nothing: the ledger is the only guard.
    Nothing,
}

/// Which answers are kept for repeats under a client's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Stores {
    /// Successes: a refusal may be tried again under its key.
    #[serde(rename = "2xx")]
    Successes,
    /// Refusals too.
    #[default]
    #[serde(rename = "2xx_4xx")]
    Refusals,
    /// Server errors too.
    #[serde(rename = "all")]
    All,
}

/// What a server error says about the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerError {
    /// The outcome is unknown.
    #[default]
    InDoubt,
    /// The upstream repeats it for the same key, so it is final: not applied.
    Final,
    /// The upstream runs a repeat of the key to its end, so it is sent again, within the budget.
    Resend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Decisions go to the journal only: no claims, nothing blocked.
    Observe,
    /// Each action as its rule says.
    #[default]
    Guard,
    /// Every action that is not a read is consequential.
    Strict,
}

/// Settings for rules that do not say otherwise.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Defaults {
    /// Where equal calls are one: `run` unless given.
    pub scope: Option<ScopeChoice>,
    /// The weight of a caller's key: `decides` unless given.
    pub caller_key: Option<CallerKey>,
    /// Who may repeat a finished effect on purpose: `agent` unless given.
    pub again: Option<Again>,
    /// Who may decide about a doubt: `person` unless given.
    pub rulings: Option<Rulings>,
    /// How errors are read: `table` unless given.
    pub failure: Option<Failure>,
    /// How many times semel itself may send again: at most 20, `2` unless given.
    pub budget: Option<Spot<i64>>,
    /// How long an attempt may take. Without one a tool or a request is in doubt after `5m` without a sign of life, a
    /// generation after `1h`, and a command only once its process is gone.
    pub timeout: Option<Spot<String>>,
    /// How long a repeat of a running call waits for its answer: `25s` unless given, `240s` for `generate`.
    pub wait: Option<Spot<String>>,
    /// How long a delivered effect without a caller's key answers repeats: unless given, `24h` within a named run, a
    /// rule's key or a live connection, and `1h` elsewhere.
    pub window: Option<Spot<String>>,
    /// An answer later than this counts as not delivered: `25s` unless given, `600s` for `generate`.
    pub late_after: Option<Spot<String>>,
}

/// Settings for the actions that it matches; `[defaults]` fill the gaps.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct RuleTable {
    /// A pattern over the action's full name, such as `mcp:billing/charge_*`.
    #[serde(rename = "match")]
    pub pattern: Option<Spot<String>>,
    /// A further condition: a table of path = value, or a CEL expression.
    pub when: Option<Spot<WhenCondition>>,
    /// The class decides about repeats. Unless given, the tool's hints and its name decide.
    #[schemars(with = "Option<ClassWord>")]
    pub class: Option<Class>,
    /// A success is `created`, `updated`, `deleted`, `sent`, `noop`, or CEL over `reply` for one of them.
    pub effect: Option<Spot<String>>,
    /// Where equal calls are one.
    pub scope: Option<ScopeChoice>,
    /// The paths that make two calls the same intent.
    #[serde(default)]
    pub key: Vec<Spot<String>>,
    /// Paths that may be reworded without making another intent.
    #[serde(default)]
    pub content: Vec<Spot<String>>,
    /// Paths that are ignored.
    #[serde(default)]
    pub volatile: Vec<Spot<String>>,
    /// Paths whose values are never written or shown, of the arguments or of the answer (`reply.card`).
    #[serde(default)]
    pub secret: Vec<Spot<String>>,
    /// Path = normalisers, applied before comparing.
    #[serde(default)]
    pub normalize: Entries<Normalisers>,
    /// Calls with an equal value here take turns. A call that is in doubt gives its turn up, although it may still be running.
    pub serialize_by: Option<Spot<String>>,
    /// Where the upstream takes an idempotency key, if it honours one.
    pub inject: Option<Spot<InjectTable>>,
    /// Without the key fields the call is refused before it is sent.
    pub key_required: Option<bool>,
    /// The weight of a caller's key.
    pub caller_key: Option<CallerKey>,
    /// Who may repeat a finished effect on purpose.
    pub again: Option<Again>,
    /// Who may decide about a doubt.
    pub rulings: Option<Rulings>,
    /// How errors are read.
    pub failure: Option<Failure>,
    /// Whether a model's answer is finished when its reader goes away: `finish` unless given.
    pub on_disconnect: Option<OnDisconnect>,
    /// How a result is read that only reports an error but is not marked as one: `read` unless given.
    pub unmarked: Option<Unmarked>,
    /// How many times semel itself may send again: at most 20.
    pub budget: Option<Spot<i64>>,
    /// How long an attempt may take.
    pub timeout: Option<Spot<String>>,
    /// How long a repeat of a running call waits for its answer.
    pub wait: Option<Spot<String>>,
    /// How long a delivered effect without a caller's key answers repeats.
    pub window: Option<Spot<String>>,
    /// An answer later than this counts as not delivered.
    pub late_after: Option<Spot<String>>,
    /// CEL over `reply`: does an answer that looks like a success refuse? An expression that fails leaves it in doubt.
    /// `graphql` reads the answer to a mutation by what its errors are about.
    pub refused: Option<Spot<String>>,
    /// Exit codes that certainly mean "not applied".
    #[serde(default)]
    pub refused_exit: Vec<Spot<i64>>,
    /// How to ask the tool for a dry run.
    pub dry_run: Option<Spot<DryRunTable>>,
    /// Did it happen? Asked after an unclear outcome.
    pub probe: Option<Spot<ProbeTable>>,
    /// It said yes: is it true?
    pub confirm: Option<Spot<ConfirmTable>>,
    /// How to take it back.
    pub undo: Option<Spot<CallTable>>,
    /// Calls that show what the rule means. `semel policy test` tries them.
    #[serde(default)]
    pub example: Vec<Spot<ExampleTable>>,
}

/// Calls of this rule, each by its arguments: a table as the tool or the body has it, or the words of a command as a
/// list. `semel policy test` tries them; loading does not.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { same = [{ id = 1 }, { id = 1 }] }")]
pub struct ExampleTable {
    /// The action's full name: `match` unless given, which then must have no wildcard. A command has its program's.
    pub action: Option<Spot<String>>,
    /// Calls that are one intent.
    #[serde(default)]
    pub same: Vec<Spot<TomlValue>>,
    /// Calls that are each another intent than all the rest, and are not held.
    #[serde(default)]
    pub differ: Vec<Spot<TomlValue>>,
    /// The class that each of them has.
    #[schemars(with = "Option<ClassWord>")]
    pub class: Option<Class>,
}

/// Where the upstream's idempotency key goes: exactly one of `header`, `arg`, `body`, `query`, `directive`, `flag` and
/// `env`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { header = \"Idempotency-Key\" }")]
pub struct InjectTable {
    /// A header of the request.
    pub header: Option<Spot<String>>,
    /// An argument of the tool; a caller's value there is overwritten.
    pub arg: Option<Spot<String>>,
    /// A member of a JSON or form body, such as `idempotency_key` or `input.id`.
    pub body: Option<Spot<String>>,
    /// A parameter of the query.
    pub query: Option<Spot<String>>,
    /// A directive of the mutations in a GraphQL body, with a `key`: `idempotent`.
    pub directive: Option<Spot<String>>,
    /// An option of the command, which comes before the key.
    pub flag: Option<Spot<String>>,
    /// A variable of the command's environment.
    pub env: Option<Spot<String>>,
    /// How the key is written: `text` unless given.
    pub form: Option<KeyForm>,
    /// At most this many characters, from 24 to 255. A UUID has its own length.
    pub length: Option<Spot<i64>>,
    /// How long the upstream honours a key.
    pub valid_for: Option<Spot<String>>,
}

/// The tool's own dry run: exactly one of `flag`, `arg` and `header`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { flag = \"--dry-run\" }")]
pub struct DryRunTable {
    /// An option of the command.
    pub flag: Option<Spot<String>>,
    /// An argument of the tool.
    pub arg: Option<Spot<String>>,
    /// A header of the request.
    pub header: Option<Spot<String>>,
    /// The value of `arg` or `header`; `true` unless given.
    pub value: Option<Spot<String>>,
}

/// One call: exactly one of `cmd`, `mcp` and `http`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct CallTable {
    /// The program and its arguments; `{path}` is filled in.
    pub cmd: Option<Spot<Vec<Spot<String>>>>,
    /// `server/tool`, or `./tool` for the action's own server.
    pub mcp: Option<Spot<String>>,
    /// The arguments of the `mcp` tool; `{path}` is filled in.
    pub args: Option<Spot<Entries<TomlValue>>>,
    /// `METHOD https://…`; `{path}` is filled in.
    pub http: Option<Spot<String>>,
    /// The JSON body of `http`; `{path}` is filled in.
    pub body: Option<Spot<Entries<TomlValue>>>,
    /// The form body of `http`; `{path}` is filled in.
    pub form: Option<Spot<Entries<TomlValue>>>,
}

/// Whether an effect is there: exactly one of `cmd`, `mcp` and `http`, which must change nothing.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ProbeTable {
    /// The program and its arguments; `{path}` is filled in.
    pub cmd: Option<Spot<Vec<Spot<String>>>>,
    /// `server/tool`, or `./tool` for the action's own server.
    pub mcp: Option<Spot<String>>,
    /// The arguments of the `mcp` tool; `{path}` is filled in.
    pub args: Option<Spot<Entries<TomlValue>>>,
    /// `GET https://…`; `{path}` is filled in.
    pub http: Option<Spot<String>>,
    /// CEL over `resp`: is our effect there? A command may do without: 0 is yes, 1 is no, all else is unknown.
    pub found: Option<Spot<String>>,
    /// CEL over `resp`: the reply that was lost.
    pub reply: Option<Spot<String>>,
    /// How long after the last possible sending, and after the answer was lost, a "no" counts: `5s` unless given. Longer
    /// than the upstream may still be working.
    pub quiet: Option<Spot<String>>,
    /// Ask before the first attempt, and skip what is already there.
    pub before: Option<bool>,
}

/// Whether a success is true: exactly one of `cmd`, `mcp` and `http`, which must change nothing.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ConfirmTable {
    /// The program and its arguments; `{path}` is filled in.
    pub cmd: Option<Spot<Vec<Spot<String>>>>,
    /// `server/tool`, or `./tool` for the action's own server.
    pub mcp: Option<Spot<String>>,
    /// The arguments of the `mcp` tool; `{path}` is filled in.
    pub args: Option<Spot<Entries<TomlValue>>>,
    /// `GET https://…`; `{path}` is filled in.
    pub http: Option<Spot<String>>,
    /// CEL over `resp`: is it true?
    pub ok: Option<Spot<String>>,
    /// How long to keep asking: `2m` unless given.
    pub within: Option<Spot<String>>,
}

/// Counted from settlement. Nothing is dropped while the clock is a week past the journal's newest line.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct RetentionTable {
    /// How long replies are kept: `30d` unless given.
    pub replies: Option<Spot<String>>,
    /// How long the fact is kept: `400d` unless given, at least as long as any `window` or `valid_for` that this ledger
    /// has served. Facts under a caller's key, and open effects, stay.
    pub facts: Option<Spot<String>>,
}

/// `{ "args.method" = "create" }`, or CEL.
#[derive(Debug, Clone)]
pub enum WhenCondition {
    Equal(Entries<TomlValue>),
    Expression(String),
}

/// The words of one entry of `normalize`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Normalisers(pub Vec<Normaliser>);

/// A value of any type that TOML knows.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct TomlValue(pub toml::Value);

/// A value with the bytes of the file that it was read from.
#[derive(Debug, Clone)]
pub struct Spot<T> {
    pub value: T,
    pub span: Range<usize>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spot<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        let span = spanned.span();
        Ok(Spot { value: spanned.into_inner(), span })
    }
}

impl<T: JsonSchema> JsonSchema for Spot<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

/// A table with free names, each with its place.
#[derive(Debug, Clone)]
pub struct Entries<T>(pub Vec<(Spot<String>, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Entries(Vec::new())
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("TableOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for WhenCondition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WhenVisitor;

        // Not an untagged enum: that would lose the places and the message.
        impl<'de> Visitor<'de> for WhenVisitor {
            type Value = WhenCondition;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of path = value, or a CEL expression as a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<WhenCondition, E> {
                Ok(WhenCondition::Expression(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WhenCondition, A::Error> {
                EntriesVisitor(PhantomData).visit_map(map).map(WhenCondition::Equal)
            }
        }
        deserializer.deserialize_any(WhenVisitor)
    }
}

impl JsonSchema for WhenCondition {
    fn schema_name() -> Cow<'static, str> {
        "When".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A table of path = value, or a CEL expression.",
            "anyOf": [{ "type": "string" }, { "type": "object" }]
        })
    }
}

impl JsonSchema for Normalisers {
    fn schema_name() -> Cow<'static, str> {
        "Normalisers".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "array",
            "items": { "enum": ["trim", "lower", "collapse_space", "sort", "number", "email"] }
        })
    }
}

impl JsonSchema for TomlValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Any".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::Schema::from(true)
    }
}

/// Stands for [`Class`], whose words must not depend on how a schema is made.
struct ClassWord;

impl JsonSchema for ClassWord {
    fn schema_name() -> Cow<'static, str> {
        "Class".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": Class::ALL.map(Class::word) })
    }
}
