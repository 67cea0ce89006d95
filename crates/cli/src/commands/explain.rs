//! `semel explain`: the page of an error code.

use crate::args::ExplainArgs;
use crate::context::Context;
use crate::output::Hinted;
use crate::table;
use semel_core::answer::{Code, Retry};
use semel_core::policy::nearest::nearest;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Debug, Serialize)]
struct ErrorPage {
    code: Code,
    /// Exit statuses of `semel run`; none where the command's own stands.
    exit: Vec<u8>,
    is_it_safe_to_retry: Retry,
    summary: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'static str>,
}

pub fn run(context: &Context, args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let (codes, whole) = match &args.code {
        None => (Code::ALL.to_vec(), false),
        Some(text) => (meant(text)?, true),
    };
    match codes.as_slice() {
        [code] if whole && context.output.json => drop(context.output.document(&of(*code, true))),
        [code] if whole => drop(context.output.data(page(*code).trim_end())),
        codes if context.output.json => {
            let pages: Vec<ErrorPage> = codes.iter().map(|code| of(*code, whole)).collect();
            context.output.list(&pages, None);
        }
        codes => {
            let rows = codes.iter().map(|code| {
                let ErrorPage { code, exit, is_it_safe_to_retry, summary, .. } = of(*code, false);
                let exit = exit.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let retry = match is_it_safe_to_retry {
                    Retry::Yes => "yes",
                    Retry::No => "no",
                    Retry::Wait => "wait",
                };
                let exit = if exit.is_empty() { "the command's".to_owned() } else { exit };
                vec![code.to_string(), exit, retry.to_owned(), summary.to_owned()]
            });
            context.output.data(table::plain(&["CODE", "EXIT", "RETRY", "MEANING"], rows).join("\n"));
            context.output.say("hint: semel explain CODE");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A code in any of its spellings, or an exit status, which several codes may share.
fn meant(text: &str) -> anyhow::Result<Vec<Code>> {
    if let Ok(status) = text.parse::<u8>() {
        let codes: Vec<Code> = Code::ALL.into_iter().filter(|code| exits(*code).contains(&status)).collect();
        if codes.is_empty() {
            let what = format!("{status} is not an exit status of semel run; it is the command's own");
            return Err(Hinted::error(what, "semel explain lists all codes"));
        }
        return Ok(codes);
    }
    let word = text.trim().to_lowercase().replace(['-', ' '], "_");
    match Code::parse(&word) {
        Some(code) => Ok(vec![code]),
        None => {
            let hint = match nearest(&word, Code::ALL.map(Code::word)) {
                Some(near) => format!("did you mean {near}?"),
                None => "semel explain lists all codes".to_owned(),
            };
            Err(Hinted::error(format!("there is no code {text}"), hint))
        }
    }
}

fn of(code: Code, whole: bool) -> ErrorPage {
    let text = page(code);
    // Every page is its title, then one sentence.
    let summary = text.lines().skip(1).find(|line| !line.is_empty()).unwrap_or_default();
    ErrorPage {
        code,
        exit: exits(code),
        is_it_safe_to_retry: code.retry(),
        summary,
        text: whole.then_some(text),
    }
}

fn exits(code: Code) -> Vec<u8> {
    match code {
        Code::NotStarted => vec![125, 126, 127],
        code => code.exit().into_iter().collect(),
    }
}

fn page(code: Code) -> &'static str {
    macro_rules! page {
        ($name:literal) => {
            include_str!(concat!("../../../../docs/errors/", $name, ".md"))
        };
    }
    match code {
        Code::InFlight => page!("in_flight"),
        Code::Drift => page!("drift"),
        Code::InDoubt => page!("in_doubt"),
        Code::KeyRequired => page!("key_required"),
        Code::Cancelled => page!("cancelled"),
        Code::BudgetSpent => page!("budget_spent"),
        Code::Refuted => page!("refuted"),
        Code::HeldForPerson => page!("held_for_person"),
        Code::Lookalike => page!("lookalike"),
        Code::Superseded => page!("superseded"),
        Code::CannotUndo => page!("cannot_undo"),
        Code::UpstreamRefused => page!("upstream_refused"),
        Code::NotStarted => page!("not_started"),
        Code::LedgerUnavailable => page!("ledger_unavailable"),
        Code::PolicyInvalid => page!("policy_invalid"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_that_begins_with_its_name() {
        for code in Code::ALL {
            assert!(page(code).starts_with(&format!("# {code}\n")), "{code}");
            assert!(!of(code, false).summary.is_empty(), "{code}");
        }
    }
}
