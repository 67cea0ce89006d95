//! A model provider's usage export beside the ledger's own figures.
//!
//! Read are the usage and cost pages of OpenAI and Anthropic, as JSON, and the tables that OpenAI's dashboard exports.

use super::OutsideRow;
use super::outside::OutsideError;
use semel_core::digest::Secret;
use semel_core::identity::value_mark;
use semel_core::json::Json;
use semel_core::time::At;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

const DAY_US: u64 = 86_400 * 1_000_000;

/// A span of time, its end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Span {
    #[serde(serialize_with = "as_text")]
    pub from: At,
    #[serde(serialize_with = "as_text")]
    pub until: At,
}

fn as_text<S: Serializer>(at: &At, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// Counts, as far as somebody told them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    pub requests: Option<u64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// In billionths of the currency.
    pub cost_nanos: Option<u64>,
}

impl Figures {
    fn add(&mut self, other: Figures) {
        let add = |own: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *own = Some(own.unwrap_or_default().saturating_add(more));
            }
        };
        add(&mut self.requests, other.requests);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cost_nanos, other.cost_nanos);
    }
}

/// The provider's figures by span and model. A model of `None` is all of them together.
pub type Export = BTreeMap<(Span, Option<String>), Figures>;

/// Whose export it is, as actions name the provider: `llm:openai/…`.
pub fn provider_of(rows: &[OutsideRow]) -> &'static str {
    if rows.iter().any(|row| row.values.get("starting_at").is_some()) { "anthropic" } else { "openai" }
}

pub fn read_export(rows: &[OutsideRow]) -> Result<Export, OutsideError> {
    let mut export = Export::new();
    for row in rows {
        let time = |names: [&str; 2]| names.into_iter().find_map(|name| instant(row.values.get(name)?));
        let from = time(["start_time", "starting_at"]);
        let (Some(from), Some(until)) = (from, time(["end_time", "ending_at"])) else {
            let what = "no usage of OpenAI or Anthropic: start_time and end_time, or starting_at and ending_at, are missing";
            return Err(OutsideError::Row { place: row.place.clone(), what: what.to_owned() });
        };
        let results = row.values.get("results").and_then(Json::as_array);
        for result in results.unwrap_or(std::slice::from_ref(&row.values)) {
            let model = result.get("model").and_then(Json::as_str).filter(|model| !model.is_empty());
            export.entry((Span { from, until }, model.map(str::to_owned))).or_default().add(figures(result));
        }
    }
    Ok(export)
}

/// Seconds since 1970, or a date.
fn instant(value: &Json) -> Option<At> {
    match decimal(value) {
        Some(seconds) => Some(At((seconds as u64).saturating_mul(1_000_000))),
        None => At::parse(value.as_str()?),
    }
}

fn figures(result: &Json) -> Figures {
    let count = |name: &str| decimal(result.get(name)?).map(|number| number as u64);
    // Anthropic counts the parts of its input one by one.
    let input = count("input_tokens").or_else(|| {
        let written = result.get("cache_creation").and_then(Json::as_object);
        let written = written.into_iter().flat_map(|parts| parts.iter());
        let written: f64 = written.filter_map(|(_, part)| decimal(part)).sum();
        let read = count("cache_read_input_tokens").unwrap_or(0);
        Some(count("uncached_input_tokens")?.saturating_add(read).saturating_add(written as u64))
    });
    // OpenAI counts in the currency, Anthropic in hundredths of it.
    let whole = || decimal(result.get("amount_value").or_else(|| result.get("amount")?.get("value"))?);
    let cost = whole().or_else(|| Some(decimal(result.get("amount")?)? / 100.0));
    Figures {
        requests: count("num_model_requests"),
        input_tokens: input,
        output_tokens: count("output_tokens"),
        cost_nanos: cost.map(|cost| (cost * 1e9).round() as u64),
    }
}

fn decimal(value: &Json) -> Option<f64> {
    let number = match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => text.parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// One attempt at a model's API, as the ledger has it.
#[derive(Debug, Clone, Copy)]
pub struct SentRequest {
    pub at: At,
    /// Of the model's name. `None`: the request was too large to have one.
    pub model: Option<u64>,
}

/// The ledger's side.
#[derive(Debug, Default)]
pub struct LedgerUsage {
    pub sent: Vec<SentRequest>,
    /// By the day since 1970, in UTC. The requests in it are those that passed through unrecorded.
    pub days: BTreeMap<u64, Figures>,
    /// Days on which other providers were asked too: their tokens and cost are in the same sum.
    pub mixed_days: BTreeSet<u64>,
}

/// One figure of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageLine {
    #[serde(flatten)]
    pub span: Span,
    /// `None`: all models together.
    pub model: Option<String>,
    pub figure: Figure,
    pub provider: u64,
    pub ledger: u64,
    /// Absent where both agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<SurplusLayer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    Requests,
    InputTokens,
    OutputTokens,
    CostNanos,
}

/// Where a surplus probably comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SurplusLayer {
    /// Callers, or their SDKs, that do not go through semel.
    OutsideSemel,
    /// Requests that semel passed through without a record.
    PassedThrough,
    /// Answers that did not tell their tokens, such as streams without usage.
    UnmeasuredAnswers,
    /// The policy has no prices for these models.
    NoPrices,
    /// Attempts that failed or were refused, which providers do not bill.
    NotBilled,
}

/// Compares what can be compared: requests by span and model, tokens and cost by days that the export covers whole.
pub fn compare_usage(export: &Export, ledger: &LedgerUsage, secret: &Secret) -> Vec<UsageLine> {
    let mut lines = Vec::new();
    let spans: BTreeSet<Span> = export.keys().map(|(span, _)| *span).collect();
    for span in &spans {
        lines.extend(compare_requests(*span, export, ledger, secret));
    }
    let mut days: BTreeMap<u64, (Figures, u64)> = BTreeMap::new();
    for span in &spans {
        let (_, covered) = days.entry(span.from.0 / DAY_US).or_default();
        *covered = covered.saturating_add(span.until.0.saturating_sub(span.from.0));
    }
    for ((span, _), figures) in export {
        days.entry(span.from.0 / DAY_US).or_default().0.add(*figures);
    }
    let is_comparable = |day: &u64, covered: u64| covered == DAY_US && !ledger.mixed_days.contains(day);
    for (day, (provider, _)) in days.into_iter().filter(|(day, (_, covered))| is_comparable(day, *covered)) {
        let from = day * DAY_US;
        let span = Span { from: At(from), until: At(from.saturating_add(DAY_US)) };
        let own = ledger.days.get(&day).copied().unwrap_or_default();
        let is_short = lines.iter().any(|line: &UsageLine| {
            line.span.from.0 / DAY_US == day && line.figure == Figure::Requests && line.provider > line.ledger
        });
        let unseen = if is_short { SurplusLayer::OutsideSemel } else { SurplusLayer::UnmeasuredAnswers };
        let unpriced = if own.cost_nanos.unwrap_or(0) == 0 { SurplusLayer::NoPrices } else { unseen };
        for (figure, provider, ledger, surplus) in [
            (Figure::InputTokens, provider.input_tokens, own.input_tokens, unseen),
            (Figure::OutputTokens, provider.output_tokens, own.output_tokens, unseen),
            (Figure::CostNanos, provider.cost_nanos, own.cost_nanos, unpriced),
        ] {
            let Some(provider) = provider else { continue };
            lines.push(line(span, None, figure, provider, ledger.unwrap_or(0), surplus));
        }
    }
    lines
}

fn compare_requests(span: Span, export: &Export, ledger: &LedgerUsage, secret: &Secret) -> Vec<UsageLine> {
    let models = export.iter().filter(|((of, _), _)| *of == span);
    let told: Vec<(Option<&str>, u64)> =
        models.filter_map(|((_, model), figures)| Some((model.as_deref(), figures.requests?))).collect();
    if told.is_empty() {
        return Vec::new();
    }
    let sent = || ledger.sent.iter().filter(|sent| span.from <= sent.at && sent.at < span.until);
    let passed_through = ledger.days.get(&(span.from.0 / DAY_US)).and_then(|day| day.requests).unwrap_or(0);
    let surplus = if passed_through > 0 { SurplusLayer::PassedThrough } else { SurplusLayer::OutsideSemel };
    let of = |model, provider, ledger: usize| {
        line(span, model, Figure::Requests, provider, ledger as u64, surplus)
    };
    // A request of unknown model may be any of them, so only the sum is known.
    if told.iter().any(|(model, _)| model.is_none()) || sent().any(|sent| sent.model.is_none()) {
        return vec![of(
            None,
            told.iter().fold(0, |sum: u64, (_, requests)| sum.saturating_add(*requests)),
            sent().count(),
        )];
    }
    let mut is_told: BTreeSet<u64> = BTreeSet::new();
    let mut lines = Vec::new();
    for (model, requests) in told {
        let name = model.unwrap_or_default();
        let marks = [name, without_date(name)].map(|name| value_mark(secret, &Json::str(name).canonical()));
        is_told.extend(marks);
        let count = sent().filter(|sent| sent.model.is_some_and(|model| marks.contains(&model))).count();
        lines.push(of(model.map(str::to_owned), requests, count));
    }
    let others = sent().filter(|sent| sent.model.is_some_and(|model| !is_told.contains(&model))).count();
    if others > 0 {
        lines.push(of(Some("(not in the export)".to_owned()), 0, others));
    }
    lines
}

/// Providers name the version that an alias stood for: `gpt-4o-2024-08-06` was asked for as `gpt-4o`.
fn without_date(model: &str) -> &str {
    let is_date = |tail: &str| {
        let digits = tail.chars().filter(char::is_ascii_digit).count();
        tail.starts_with('-') && digits == 8 && tail.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    let tails = ["-2024-08-06", "-20240806"].map(str::len);
    let parts = tails.into_iter().filter_map(|tail| model.split_at_checked(model.len().checked_sub(tail)?));
    let mut dated = parts.filter(|(_, tail)| is_date(tail));
    dated.next().map_or(model, |(name, _)| name)
}

fn line(
    span: Span,
    model: Option<String>,
    figure: Figure,
    provider: u64,
    ledger: u64,
    surplus: SurplusLayer,
) -> UsageLine {
    let layer = match provider.cmp(&ledger) {
        std::cmp::Ordering::Greater => Some(surplus),
        std::cmp::Ordering::Less => Some(SurplusLayer::NotBilled),
        std::cmp::Ordering::Equal => None,
    };
    UsageLine { span, model, figure, provider, ledger, layer }
}

#[cfg(test)]
mod tests {
    use super::super::outside::of_text;
    use super::*;

    const DAY: u64 = 20_000;

    fn secret() -> Secret {
        Secret::new([7; 32])
    }

    fn mark(model: &str) -> Option<u64> {
        Some(value_mark(&secret(), &Json::str(model).canonical()))
    }

    fn sent(hour: u64, model: Option<u64>) -> SentRequest {
        SentRequest { at: At(DAY * DAY_US + hour * 3_600_000_000), model }
    }

    fn export(text: &str) -> Export {
        read_export(&of_text(text.as_bytes()).expect("rows")).expect("an export")
    }

    fn words(export: &Export, ledger: &LedgerUsage) -> Vec<String> {
        let lines = compare_usage(export, ledger, &secret());
        let word = |line: &UsageLine| {
            let model = line.model.as_deref().unwrap_or("all");
            format!("{model} {:?} {}/{} {:?}", line.figure, line.provider, line.ledger, line.layer)
        };
        lines.iter().map(word).collect()
    }

    /// A day of OpenAI's usage, one bucket with two models.
    fn openai() -> Export {
        let (from, until) = (DAY * 86_400, (DAY + 1) * 86_400);
        export(&format!(
            r#"{{"object":"page","data":[{{"object":"bucket","start_time":{from},"end_time":{until},"results":[
            {{"object":"organization.usage.completions.result","input_tokens":1000,"output_tokens":500,
              "input_cached_tokens":800,"num_model_requests":5,"project_id":null,"model":"gpt-4o-2024-08-06"}},
            {{"input_tokens":10,"output_tokens":5,"num_model_requests":1,"model":"o3"}}]}}],"has_more":false}}"#
        ))
    }

    #[test]
    fn requests_are_compared_by_model_and_tokens_by_day() {
        let gpt = mark("gpt-4o");
        let day = Figures { input_tokens: Some(1010), output_tokens: Some(400), ..Figures::default() };
        let mut ledger = LedgerUsage {
            sent: vec![sent(1, gpt), sent(2, gpt), sent(3, gpt), sent(3, mark("o3")), sent(4, mark("x"))],
            days: BTreeMap::from([(DAY, day)]),
            mixed_days: BTreeSet::new(),
        };
        assert_eq!(
            words(&openai(), &ledger),
            [
                "gpt-4o-2024-08-06 Requests 5/3 Some(OutsideSemel)",
                "o3 Requests 1/1 None",
                "(not in the export) Requests 0/1 Some(NotBilled)",
                "all InputTokens 1010/1010 None",
                "all OutputTokens 505/400 Some(OutsideSemel)",
            ]
        );
        // A large request has no model in the ledger, and another provider's tokens are in the same sum.
        ledger.sent.push(sent(5, None));
        ledger.mixed_days.insert(DAY);
        assert_eq!(words(&openai(), &ledger), ["all Requests 6/6 None"]);
    }

    #[test]
    fn tables_and_the_pages_of_both_providers_are_read() {
        let (from, until) = (DAY * 86_400, (DAY + 1) * 86_400);
        let table = export(&format!(
            "start_time,end_time,start_time_iso,num_model_requests,model,input_tokens,output_tokens\n\
             {from},{until},x,2,o3,7,3\n{from},{until},x,1,o3,1,1\n{until},{until},x,,,,\n"
        ));
        let figures = |export: &Export| export.values().next().copied().expect("a row");
        let sum =
            Figures { requests: Some(3), input_tokens: Some(8), output_tokens: Some(4), cost_nanos: None };
        assert_eq!(figures(&table), sum);
        let money =
            export(&format!("start_time,end_time,amount_value,amount_currency\n{from},{until},0.0625,usd\n"));
        assert_eq!(figures(&money).cost_nanos, Some(62_500_000));
        let money = export(&format!(
            r#"{{"data":[{{"start_time":{from},"end_time":{until},"results":[{{"amount":{{"value":0.06,"currency":"usd"}},"line_item":null}}]}}]}}"#
        ));
        assert_eq!(figures(&money).cost_nanos, Some(60_000_000));
        let anthropic = of_text(
            r#"{"data":[{"starting_at":"2026-01-01T00:00:00Z","ending_at":"2026-01-02T00:00:00Z","results":[
            {"uncached_input_tokens":1500,"cache_creation":{"ephemeral_1h_input_tokens":1000,"ephemeral_5m_input_tokens":500},
             "cache_read_input_tokens":200,"output_tokens":500,"model":"claude-sonnet-4-20250514"}]}],"has_more":false}"#
                .as_bytes(),
        )
        .expect("rows");
        assert_eq!(
            (provider_of(&anthropic), without_date("claude-sonnet-4-20250514")),
            ("anthropic", "claude-sonnet-4")
        );
        let read = figures(&read_export(&anthropic).expect("an export"));
        assert_eq!((read.requests, read.input_tokens, read.output_tokens), (None, Some(3200), Some(500)));
        let cents = export(
            r#"{"data":[{"starting_at":"2026-01-01T00:00:00Z","ending_at":"2026-01-02T00:00:00Z","results":[{"amount":"123.5","currency":"USD"}]}]}"#,
        );
        assert_eq!(figures(&cents).cost_nanos, Some(1_235_000_000));
        assert!(read_export(&of_text("a,b\n1,2\n".as_bytes()).expect("rows")).is_err());
    }
}
