//! The forms in which a door on another machine asks the API. Both sides use these very types.

use super::rule_form::RuleForm;
use schemars::JsonSchema;
use semel_core::answer::{Answer, EffectWord};
use semel_core::class::{Class, Tier};
use semel_core::effect::Evidence;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Every path of the API begins with this.
pub const BASE: &str = "/api/v1";

/// A program's or a tool's name is much shorter.
pub const ACTION_PATTERN: &str = r"^(cli|mcp):[^\x00-\x1f\x7f]{1,500}$";

/// As long as an address may be.
pub const AUTHORITY_CHARS_MAX: usize = 1_024;

pub use semel::call::begin::{CALL_ID_CHARS_MAX, NONCE_PATTERN, RESOURCE_CHARS_MAX};
pub use semel::call::settle::WHY_CHARS_MAX;

/// No command is waited for any longer: 24 hours.
pub const TIMEOUT_MS_MAX: u64 = 24 * 3_600_000;

/// The server keeps no request waiting for longer.
pub const WAIT_MS_MAX: u64 = 60_000;

/// As large as the largest reply that any of these doors keeps.
pub const FORM_REPLY_BYTES_MAX: usize = 16 << 20;

/// A reply of that size in base 64, and the words around it.
pub const FORM_BYTES_MAX: usize = FORM_REPLY_BYTES_MAX / 3 * 4 + (1 << 20);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "Call")]
pub struct CallForm {
    /// `cli:PROGRAM` or `mcp:SERVER/TOOL`.
    #[schemars(regex(pattern = ACTION_PATTERN))]
    pub action: String,
    /// `argv`, `cwd` and `stdin` of a command; `args` of a tool.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub arguments: Box<RawValue>,
    pub rule: RuleForm,
    /// The server behind a tool's name.
    #[serde(default)]
    #[schemars(length(max = AUTHORITY_CHARS_MAX))]
    pub authority: String,
    /// The class that this one call asks for.
    #[serde(default)]
    pub class: Option<Class>,
    #[serde(default)]
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    pub key: Option<String>,
    #[serde(default)]
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    pub run: Option<String>,
    /// The run was not named for this purpose: it labels the effect and does not bound it.
    #[serde(default)]
    pub run_inferred: bool,
    #[serde(default)]
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    pub again: Option<String>,
    #[serde(default)]
    #[schemars(length(min = 1, max = CALL_ID_CHARS_MAX))]
    pub call_id: Option<String>,
    /// The caller's own connection has done it before.
    #[serde(default)]
    pub live_connection: bool,
    #[serde(default)]
    #[schemars(length(min = 1, max = RESOURCE_CHARS_MAX))]
    pub serialize_by: Option<String>,
    /// A refusal under the key answers its repeats, as a success does.
    #[serde(default)]
    pub replay_refusals: bool,
    /// A random name of this attempt. Asking again with it gets the same claim.
    #[schemars(regex(pattern = NONCE_PATTERN))]
    pub nonce: String,
    /// How long the caller may take, 24 hours at most.
    #[serde(deserialize_with = "whole")]
    #[schemars(range(min = 1, max = TIMEOUT_MS_MAX))]
    pub timeout_ms: u64,
    /// How long to wait for an equal call, a minute at most.
    #[serde(deserialize_with = "whole")]
    #[schemars(range(min = 0, max = WAIT_MS_MAX))]
    pub wait_ms: u64,
    #[serde(default)]
    pub dry_run: bool,
    /// Why the caller could not send it now. It is answered from the record where there is an answer, and gets no claim.
    #[serde(default)]
    #[schemars(length(min = 1, max = WHY_CHARS_MAX))]
    pub not_ready: Option<String>,
}

/// JSON has one kind of number: 5.0 is as whole as 5.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    /// Up to here every whole number has a text of its own.
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    let number = serde_json::Number::deserialize(deserializer)?;
    let small =
        |number: f64| (number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number)).then_some(number as u64);
    let whole = number.as_u64().or_else(|| number.as_f64().and_then(small));
    whole.ok_or_else(|| D::Error::custom(format_args!("{number} is not a non-negative whole number")))
}

pub(super) fn whole_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    struct Whole(#[serde(deserialize_with = "whole")] u64);
    Ok(Option::<Whole>::deserialize(deserializer)?.map(|Whole(number)| number))
}

/// The right to make one attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallClaim {
    pub outcome: RunWord,
    /// Null in observe mode: nothing is recorded, and there is nothing to settle.
    pub claim: Option<String>,
    pub effect_id: Option<String>,
    pub attempt: Option<u32>,
    /// Which effect of its record it is, from 1.
    pub occurrence: u32,
    pub class: Class,
    pub tier: Tier,
    pub deadline: Option<String>,
    /// How long the request was at the server before the claim: that time does not count against the deadline. Zero for
    /// a claim that an earlier request took.
    pub waited_ms: u64,
    pub idempotency_key: Option<String>,
    pub possible_repeat: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunWord {
    Run,
}

/// Either the right to run, or the answer.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "CallAnswer")]
#[allow(dead_code, reason = "it is only described")]
pub enum BegunCallForm {
    Run(Box<CallClaim>),
    Answer(Box<AnsweredCallForm>),
}

#[derive(Debug, JsonSchema)]
#[schemars(rename = "AnsweredCall")]
#[allow(dead_code, reason = "it is only described")]
pub struct AnsweredCallForm {
    #[serde(flatten)]
    answer: Answer,
    /// The recorded reply, to the byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_base64: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "CallSettlement")]
pub struct SettlementForm {
    #[schemars(regex(pattern = r"^cl_[0-9A-HJKMNP-TV-Z]{26}_[0-9]{1,10}_[0-9a-f]{32}$"))]
    pub claim: String,
    pub outcome: CallOutcome,
    /// Of a success.
    #[serde(default)]
    pub effect: Option<EffectWord>,
    /// Of a success; `reported` unless given.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    #[serde(default)]
    #[schemars(length(max = WHY_CHARS_MAX))]
    pub why: String,
    /// The reply as the door keeps it.
    #[serde(default)]
    pub reply_base64: Option<String>,
    /// How long a reply was that is too large to be kept.
    #[serde(default, deserialize_with = "whole_if_any")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub reply_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Applied,
    /// Certainly not: it was refused.
    Refused,
    /// The tool says that it failed.
    Reported,
    NeverSent,
    AwaitingInput,
    InDoubt,
}

/// The answer has reached its caller.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "CallDelivered")]
pub struct DeliveredForm {
    #[schemars(regex(pattern = r"^ef_[0-9A-HJKMNP-TV-Z]{26}$"))]
    pub effect_id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Delivered")]
pub struct DeliveredAnswer {
    /// False: it is no longer the newest of its record, or no success.
    pub delivered: bool,
}

/// The identity that the token gives its bearer, and the server's own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Whoami {
    pub tenant: String,
    pub principal: String,
    pub scope: String,
    /// The server's clock.
    pub time: String,
    /// The server's version of semel.
    pub version: String,
}
