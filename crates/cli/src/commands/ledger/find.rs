//! `semel ledger find`: effects by a word of theirs.
//!
//! It walks from the newest on and says how far it came. An index of words would cost every call a few writes, and people
//! look for what is open or was done lately.

use super::named::{self, SUFFIX_CHARACTERS_MIN};
use super::scan;
use crate::args::FindArgs;
use crate::context::Context;
use crate::open::TENANT;
use crate::output::Hinted;
use crate::{effect_json, table};
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::identity::IntentDigest;
use semel_core::ids::{EffectId, IdempotencyKey};
use semel_core::intent::run_key;
use semel_core::subject::quoted_for_a_shell;
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::record::decode;
use semel_ledger::store::{Cursor, Latest, PAGE_ROWS_MAX};
use semel_ledger::{Error, Ledger};
use serde_json::json;
use std::process::ExitCode;

/// So many of the newest effects are looked at, where nobody asks for more: a second or two on the slowest engine.
const LOOKED_AT_MAX: u64 = 10_000;

pub fn run(context: &Context, args: &FindArgs) -> anyhow::Result<ExitCode> {
    let text = args.text.trim();
    if text.is_empty() {
        return Err(Hinted::error("there is nothing to look for", "semel ledger list"));
    }
    let clock = SystemClock::start();
    let now = clock.now();
    let ledger = context.existing_ledger(&clock)?;
    let mut search = Search::of(text, args, now);
    let (mut effects, mut items, mut next) = (Vec::new(), Vec::new(), None);
    if let Some(ledger) = &ledger {
        next = search.look(ledger, args)?;
        for (key, effect) in std::mem::take(&mut search.found) {
            let effect = scan::now_of(ledger, key, effect, now)?;
            if context.output.json {
                items.push(effect_json::read(ledger, key, &effect)?);
            }
            effects.push(effect);
        }
    }
    scan::say_left_out(context.output, search.damaged);
    if context.output.json {
        let next = next.map(|place| place.0.to_string());
        let back_to = search.back_to.map(|at| at.to_string());
        let looked_at = json!({"effects": search.looked_at, "back_to": back_to});
        context
            .output
            .document(&json!({"schema_version": 1, "items": items, "next": next, "looked_at": looked_at}));
        return Ok(ExitCode::SUCCESS);
    }
    if effects.is_empty() {
        context.output.say(format_args!("no effect with {}", quoted_for_a_shell(text)));
    } else {
        context.output.data(table::effects(&effects, now, args.wide));
    }
    match (next, search.back_to) {
        (Some(Cursor(place)), _) if effects.len() >= search.limit => {
            context.output.say(format_args!("the newest {}; older ones: --before {place}", effects.len()));
        }
        (Some(Cursor(place)), Some(back_to)) => {
            let open = if args.before.is_none() { "every open effect and " } else { "" };
            context.output.say(format_args!(
                "looked at {open}{} of all, back to {back_to}; older ones: --before {place}, --since TIME or --all",
                search.looked_at
            ));
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// A search, and how far it has come.
struct Search {
    /// In lower case.
    text: String,
    key: Option<IdempotencyKey>,
    limit: usize,
    since: Option<At>,
    found: Vec<(Digest, Effect)>,
    damaged: usize,
    /// Of all effects, from the newest on.
    looked_at: u64,
    back_to: Option<At>,
}

impl Search {
    fn of(text: &str, args: &FindArgs, now: At) -> Search {
        Search {
            text: text.to_lowercase(),
            key: IdempotencyKey::parse(text).ok(),
            limit: args.limit.get(),
            since: args.since.map(|span| At(now.0.saturating_sub(span.as_micros() as u64))),
            found: Vec::new(),
            damaged: 0,
            looked_at: 0,
            back_to: None,
        }
    }

    /// Returns where to go on.
    fn look(&mut self, ledger: &Ledger, args: &FindArgs) -> anyhow::Result<Option<Cursor>> {
        let text = args.text.trim();
        if let Some(id) = EffectId::parse(text) {
            match block_on(ledger.by_id(id)) {
                Ok((key, known)) => self.found.push((key, known.effect)),
                Err(Error::NoSuchEffect(_)) => {}
                Err(error) => return Err(error.into()),
            }
            return Ok(None);
        }
        let before = args.before.map(Cursor);
        let is_first = before.is_none();
        if let (true, Some(key)) = (is_first, &self.key) {
            self.found.extend(named::led_to(ledger, key)?);
        }
        let bounded = !args.all && args.since.is_none();
        let next = self.walk(ledger, Latest::All, before, bounded)?;
        if let (true, Some(place)) = (is_first, next) {
            // What stays behind may be open, or of the run that is meant.
            self.walk(ledger, Latest::Open, Some(place), false)?;
            self.walk(ledger, Latest::Run(run_key(ledger.secret(), TENANT, text)), Some(place), false)?;
        }
        Ok(next)
    }

    fn walk(
        &mut self,
        ledger: &Ledger,
        of: Latest,
        mut before: Option<Cursor>,
        bounded: bool,
    ) -> anyhow::Result<Option<Cursor>> {
        let of_all = of == Latest::All;
        loop {
            let page = block_on(ledger.store().latest(of, before, PAGE_ROWS_MAX))?;
            let mut is_recent = false;
            for (place, row) in page.items {
                let is_full = self.found.len() >= self.limit || bounded && self.looked_at == LOOKED_AT_MAX;
                if is_full && before.is_some() {
                    return Ok(before);
                }
                before = Some(place);
                let (key, opened_at) = (row.key, row.index.opened_at);
                let is_wanted = self.since.is_none_or(|since| opened_at >= since);
                is_recent |= is_wanted;
                if of_all {
                    self.looked_at += 1;
                    self.back_to = Some(opened_at);
                }
                let effect = decode(row).effect;
                if effect.is_damaged() {
                    self.damaged += 1;
                } else if is_wanted && self.is_meant(&effect) && !self.has(effect.id) {
                    self.found.push((key, effect));
                }
            }
            // Clocks of several hosts differ by less than a page of effects.
            if page.next.is_none() || !is_recent {
                return Ok(None);
            }
        }
    }

    fn has(&self, id: EffectId) -> bool {
        self.found.iter().any(|(_, effect)| effect.id == id)
    }

    fn is_meant(&self, effect: &Effect) -> bool {
        let facts = &effect.facts;
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        let is_key = |key: &IdempotencyKey| {
            facts.caller_key && facts.digest == IntentDigest::of_caller_key(key.as_str())
        };
        let end = self.text.trim_start_matches('…');
        has(&facts.subject)
            || has(&facts.action)
            || facts.run.as_ref().is_some_and(|run| has(&run.id))
            || (end.len() >= SUFFIX_CHARACTERS_MIN && effect.id.to_string().to_lowercase().ends_with(end))
            || self.key.as_ref().is_some_and(is_key)
    }
}
