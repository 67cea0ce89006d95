//! Tools that semel offers beside the server's own: what was done here, and how a doubt is settled with evidence.

use super::call::ToolCall;
use super::connection::ClientConnection;
use super::frame::Frame;
use super::server::Server;
use super::tools::Tools;
use crate::caller::Caller;
use crate::services::Services;
use crate::terminal_text;
use crate::wire::members::quoted;
use semel_core::digest::Secret;
use semel_core::effect::{Effect, NotApplied, NotAppliedWhy, State};
use semel_core::ids::{EffectId, Reason};
use semel_core::intent::{principal_mark, run_key};
use semel_core::json::Json;
use semel_core::policy::ActionFacts;
use semel_core::policy::rule::Rulings;
use semel_core::subject::in_short;
use semel_core::time::At;
use semel_core::wording;
use semel_gate::agent_ruling::ReportOutcome;
use semel_gate::clock::Clock;
use semel_ledger::record::decode;
use semel_ledger::store::{By, Latest, PAGE_ROWS_MAX};
use serde_json::json;
use std::time::Duration;

pub const LEDGER: &str = "semel_ledger";
pub const REPORT: &str = "semel_report";

/// A list for a model to read; the whole ledger is a person's matter.
const EFFECTS_MAX: usize = 100;

/// How far back a caller without a run sees: agents resume within a day.
const LISTED_FOR: Duration = Duration::from_secs(24 * 3600);

/// Of everybody's effects no more are looked at than this, so that no call takes long.
const LOOKED_AT_MAX: usize = 5_000;

pub fn is_own(tool: &str) -> bool {
    tool == LEDGER || tool == REPORT
}

/// As they stand in a listing. `semel_report` is offered where a rule lets an agent decide.
pub fn definitions(services: &Services, server: &Server, tools: &Tools) -> Vec<String> {
    let mut own = vec![json!({
        "name": LEDGER,
        "description": "Effects made through this server in this run, or in the last 24 hours if there is \
                        no run, and what is in doubt. Use it when you are not sure whether a call went through.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": true},
    })];
    if tools.iter().any(|tool| agents_decide(services, &server.action(&tool.name))) {
        own.push(json!({
            "name": REPORT,
            "description": "Settles a call whose outcome is in doubt, after you have looked with a read-only tool. \
                            Only with evidence; never by guessing.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "effect_id": {"type": "string", "description": "The id of the effect in doubt, ef_…"},
                    "happened": {"type": "boolean", "description": "Whether it happened."},
                    "evidence": {"type": "string", "description": "What you saw that proves it."},
                },
                "required": ["effect_id", "happened", "evidence"],
            },
        }));
    }
    own.iter()
        .filter(|tool| tools.get(tool["name"].as_str().unwrap_or_default()).is_none())
        .map(ToString::to_string)
        .collect()
}

/// Whether an agent may decide about a doubt of this action. The arguments are not kept, so it may not where they
/// decide which rule holds.
pub fn agents_decide(services: &Services, action: &str) -> bool {
    services.policy.rule_for(&ActionFacts::new(action, &Json::Null)).rulings == Rulings::Agent
}

pub async fn answer(
    services: &Services,
    server: &Server,
    connection: &ClientConnection,
    call: &ToolCall,
) -> Frame {
    let said = match call.tool.as_str() {
        LEDGER => ledger(services, server, connection, call).await,
        _ if call.dry_run => Err(format!("{REPORT} has no dry run; nothing was recorded.")),
        _ => report(services, server, connection, call).await,
    };
    let (text, is_error) = match said {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    let kind = if call.version.is_some() { r#""resultType":"complete","# } else { "" };
    let result =
        format!(r#"{{{kind}"content":[{{"type":"text","text":{}}}],"isError":{is_error}}}"#, quoted(&text));
    Frame::result(&call.id, Frame::from(result))
}

async fn ledger(
    services: &Services,
    server: &Server,
    connection: &ClientConnection,
    call: &ToolCall,
) -> Result<String, String> {
    let gate = services.gate.as_ref().map_err(Clone::clone)?;
    let ledger = &gate.ledger;
    let caller = &connection.caller;
    let run = caller.run.as_ref().or(call.runs.named.as_ref()).or(caller.surrounding_run.as_ref());
    let cannot = |error: semel_ledger::Error| error.to_string();
    let (mut effects, mut damaged) = (Vec::new(), 0);
    let is_mine = |effect: &Effect| is_of(effect, ledger.secret(), caller);
    let is_here = |effect: &Effect| server.has_done(&effect.facts, ledger.secret());
    // A run may reach over several servers, but what another of this name did would be taken for this one's.
    let is_told = |effect: &Effect| {
        is_mine(effect) && (is_here(effect) || run.is_some() && !server.shares_name_with(&effect.facts))
    };
    let (of, since) = match run {
        Some(run) => (Latest::Run(run_key(ledger.secret(), &caller.tenant, &run.id)), At(0)),
        None => (Latest::All, At(services.clock.now().0.saturating_sub(LISTED_FOR.as_micros() as u64))),
    };
    let (mut before, mut looked_at) = (None, 0);
    let is_whole = loop {
        let page = ledger.store().latest(of, before, PAGE_ROWS_MAX).await.map_err(cannot)?;
        looked_at += page.items.len();
        let is_past = page.items.last().is_none_or(|(_, row)| row.index.opened_at < since);
        for (_, row) in page.items.into_iter().filter(|(_, row)| row.index.opened_at >= since) {
            let key = row.key;
            match decode(row) {
                // Whose it was is not known either.
                known if known.effect.is_damaged() => {
                    damaged += usize::from(run.is_some() || is_operator(caller))
                }
                known if known.effect.open_attempt().is_some() && is_told(&known.effect) => {
                    // Looking also notices a holder that has died.
                    let found = ledger.observe(key, services.clock.now()).await.map_err(cannot)?;
                    let observed = found.effect().filter(|observed| observed.id == known.effect.id);
                    effects.push(observed.cloned().unwrap_or(known.effect));
                }
                known => effects.extend(Some(known.effect).filter(is_told)),
            }
        }
        before = page.next;
        if before.is_none() || is_past || effects.len() >= EFFECTS_MAX {
            break true;
        }
        if looked_at >= LOOKED_AT_MAX {
            break false;
        }
    };
    // An open effect concerns the caller that began it, on every connection.
    let open = ledger.listing(By::Open, None, EFFECTS_MAX).await.map_err(cannot)?;
    for (key, known) in open.items {
        let mine = is_mine(&known.effect) && is_here(&known.effect);
        if mine && !effects.iter().any(|effect| effect.id == known.effect.id) {
            let found = ledger.observe(key, services.clock.now()).await.map_err(cannot)?;
            effects.extend(found.effect().cloned());
        }
    }
    shorten(&mut effects);
    for effect in &mut effects {
        effect.undone = ledger.undone(effect).await.map_err(cannot)?;
    }
    let whose = match run {
        Some(run) => format!("in run {}", run.id),
        None if is_whole => "through this server in the last 24 hours".to_owned(),
        None => format!("through this server, among the newest {looked_at} effects on record,"),
    };
    let doubts = if is_operator(caller) { "this server" } else { "yours here" };
    if damaged > 0 {
        let lines: Vec<String> = effects.iter().map(line).collect();
        let lines = lines.join("\n");
        return Ok(format!("{damaged} on record cannot be read. The others {whose}, oldest first:\n{lines}"));
    }
    if effects.is_empty() {
        return Ok(format!("Nothing was done {whose}, and nothing of {doubts} is in doubt."));
    }
    let lines: Vec<String> = effects.iter().map(line).collect();
    Ok(format!("Done {whose}, and open here, oldest first:\n{}", lines.join("\n")))
}

/// Whether an effect is this caller's to know of: the operator's are all of the tenant's.
fn is_of(effect: &Effect, secret: &Secret, caller: &Caller) -> bool {
    let own = principal_mark(secret, &caller.tenant, &caller.principal);
    effect.facts.tenant == caller.tenant && (is_operator(caller) || effect.facts.principal == own)
}

fn is_operator(caller: &Caller) -> bool {
    caller.principal == caller.tenant
}

/// In order, with the oldest of what has ended left out first: a doubt must be seen.
fn shorten(effects: &mut Vec<Effect>) {
    effects.sort_by_key(|effect| effect.opened_at);
    let mut excess = effects.len().saturating_sub(EFFECTS_MAX);
    effects.retain(|effect| {
        let stays = excess == 0 || effect.is_open();
        excess -= usize::from(!stays);
        stays
    });
    effects.truncate(EFFECTS_MAX);
}

/// An effect and what became of it, in one line.
fn line(effect: &Effect) -> String {
    let state = match &effect.state {
        State::Applied(applied) => {
            let undone =
                effect.undone.map(|undone| format!(", then undone by {} at {}", undone.by, undone.at));
            format!("{}{}", wording::how_applied(effect, applied), undone.unwrap_or_default())
        }
        State::NotApplied(NotApplied { why: NotAppliedWhy::Reported(what), .. }) => {
            format!("failed: {what}; whether it changed anything is not known")
        }
        State::NotApplied(not) => format!("did not happen: {}", wording::why_not_applied(&not.why)),
        State::InFlight { .. } => "still running".into(),
        State::InDoubt(doubt) => {
            format!("IN DOUBT: {}. Check first; do not repeat it", wording::why_in_doubt(&doubt.why))
        }
    };
    let facts = &effect.facts;
    let again = effect
        .occurrence
        .reason
        .as_ref()
        .map_or_else(String::new, |why| format!(" (repeated on purpose: {})", why.as_str()));
    // Tools and callers wrote parts of it, and a line of theirs must not look like another one.
    let subject = in_short(&facts.subject);
    let what = terminal_text::line(&format!("{} {subject}: {state}{again}", facts.action));
    format!("- {} {} {what}", effect.opened_at, effect.id)
}

async fn report(
    services: &Services,
    server: &Server,
    connection: &ClientConnection,
    call: &ToolCall,
) -> Result<String, String> {
    let gate = services.gate.as_ref().map_err(Clone::clone)?;
    let args = call.arguments.get("args").cloned().unwrap_or(Json::Null);
    let text = |name: &str| args.get(name).and_then(Json::as_str);
    let id = text("effect_id").and_then(EffectId::parse).ok_or("effect_id must be an id such as ef_01J…")?;
    let happened = args.get("happened").and_then(Json::as_bool).ok_or("happened must be true or false")?;
    let evidence = text("evidence").ok_or("evidence must say what you saw")?;
    let reason = Reason::parse(evidence).map_err(|error| error.to_string())?;
    let unknown = || format!("there is no effect {id} of this server");
    let (_, known) = gate.ledger.by_id(id).await.map_err(|error| match error {
        semel_ledger::Error::NoSuchEffect(_) => unknown(),
        other => other.to_string(),
    })?;
    // Possession of an id is no right: another tenant's effect, another principal's and another server's, also one of
    // the same name, are as good as none.
    let secret = gate.ledger.secret();
    let facts = known.effect.facts.as_ref();
    if !is_of(&known.effect, secret, &connection.caller) || !server.has_done(facts, secret) {
        return Err(unknown());
    }
    let action = &facts.action;
    // A condition that is false of no arguments may have been true of these.
    let made_under = services.policy.rule_kept(action, &known.effect.facts.rule);
    if !agents_decide(services, action) || made_under.rulings != Rulings::Agent {
        let how = wording::in_doubt(&known.effect).human_next_step;
        return Err(format!("{action} leaves this decision to a person: {how}"));
    }
    let outcome = gate.report(&known.effect, happened, reason).await.map_err(|error| error.to_string())?;
    match outcome {
        ReportOutcome::Recorded if happened => Ok(format!("Recorded: {id} is done.")),
        ReportOutcome::Recorded => Ok(format!("Recorded: {id} is not done; it may be called again.")),
        ReportOutcome::NotInDoubt => Err(format!("{id} is not in doubt; nothing was changed.")),
        ReportOutcome::TooSoon => {
            let why = "the server is still working on it";
            Err(format!("{id} cannot be reported as not done yet: {why}. Look and report again later."))
        }
    }
}
