//! The world and the ledger, held against each other.

use super::plan::CallKind;
use super::stage::{GivenAnswer, Simulation, lock};
use super::world::EffectPlace;
use semel_core::answer::Code;
use semel_core::effect::{Effect, State};
use semel_core::ids::EffectId;
use semel_gate::clock::block_on;
use semel_ledger::holders::Holders;
use semel_ledger::record::decode;
use semel_ledger::store::{By, JournalLine, PAGE_ROWS_MAX};
use std::collections::BTreeMap;

/// Everything that must hold after any seed, in words where it does not.
pub fn all(stage: &Simulation) -> Vec<String> {
    let given = lock(&stage.given).clone();
    let journal = journal(stage);
    let rows = rows(stage);
    count_journal(stage, &journal);
    let mut wrong = Vec::new();
    at_most_once(stage, &given, &mut wrong);
    one_name_one_effect(stage, &mut wrong);
    answers_are_true(stage, &given, &rows, &mut wrong);
    ledger_is_true(stage, &rows, &mut wrong);
    drained_is_final(stage, &mut wrong);
    replies_agree(stage, &given, &mut wrong);
    faultless_is_doubtless(stage, &journal, &mut wrong);
    comes_to_rest(stage, &given, &rows, &mut wrong);
    wrong
}

fn kind_of(stage: &Simulation, place: EffectPlace) -> Option<CallKind> {
    let given = lock(&stage.given);
    let template = given.iter().find(|given| given.key == place.0).map(|given| given.template)?;
    Some(stage.plan.templates[template].kind)
}

fn at_most_once(stage: &Simulation, given: &[GivenAnswer], wrong: &mut Vec<String>) {
    let convergent = |place: EffectPlace| {
        let one = given.iter().find(|given| given.key == place.0);
        one.is_some_and(|given| stage.plan.templates[given.template].kind == CallKind::Convergent)
    };
    for (place, done) in stage.world.places() {
        let times = done.len();
        if times > 1 && !convergent(place) {
            let kind = kind_of(stage, place);
            wrong.push(format!("at most once: effect {} of {kind:?} happened {times} times", place.1));
        }
    }
}

/// Whoever asks twice with the same reason, for the same call of a model, or with none where a success answers repeats,
/// gets one effect.
fn one_name_one_effect(stage: &Simulation, wrong: &mut Vec<String>) {
    // A failover may lose the effect that a name stood for, and after a reboot a jump of the clock ends windows.
    let counts = stage.tally.counts();
    if counts.contains_key("failover") || stage.plan.jumpy && counts.contains_key("power cut") {
        return;
    }
    for ((_, name), effects) in stage.world.asked() {
        if effects.len() > 1 {
            wrong.push(format!("one name, one effect: {name:?} did effects {effects:?} of its record"));
        }
    }
}

fn answers_are_true(
    stage: &Simulation,
    given: &[GivenAnswer],
    rows: &BTreeMap<EffectPlace, Effect>,
    wrong: &mut Vec<String>,
) {
    let by_id: BTreeMap<EffectId, EffectPlace> =
        rows.iter().map(|(place, effect)| (effect.id, *place)).collect();
    for answer in given {
        if answer.ok && answer.done_then == 0 {
            wrong.push(format!(
                "success is true: {:?} was answered for what had not happened",
                answer.outcome
            ));
        }
        let denied = matches!(answer.code, Some(Code::UpstreamRefused));
        let place = answer.effect.and_then(|id| by_id.get(&id));
        let convergent = stage.plan.templates[answer.template].kind == CallKind::Convergent;
        // A failover loses later attempts, so the record cannot tell them apart.
        let failover = stage.tally.counts().contains_key("failover");
        if let Some(place) = place.filter(|_| denied && !convergent && !failover) {
            // What a later attempt did is no lie; the ledger then says applied, with a later answer.
            let later = rows.get(place).is_some_and(|effect| effect.attempts.len() > 1);
            if !later && !stage.world.done(*place).is_empty() {
                wrong.push("denial is true: refused was answered for what happened".into());
            }
        }
    }
}

fn ledger_is_true(stage: &Simulation, rows: &BTreeMap<EffectPlace, Effect>, wrong: &mut Vec<String>) {
    for (place, effect) in rows {
        if matches!(effect.state, State::Applied(_)) && stage.world.done(*place).is_empty() {
            wrong.push(format!("applied is true: {} is applied and did not happen", effect.id));
        }
    }
    let forgotten = stage.tally.counts().contains_key("failover");
    for (place, _) in stage.world.places() {
        match rows.get(&place).map(|effect| &effect.state) {
            Some(State::Applied(_) | State::InDoubt(_) | State::InFlight { .. }) => {}
            // After a failover what is unseen or not applied counts as in doubt; the answers above show whether.
            None | Some(State::NotApplied(_)) if forgotten => {}
            None => wrong.push("an effect is known: it happened and the ledger has not seen it".into()),
            Some(State::NotApplied(_)) => {
                wrong.push("an effect is known: it happened and the ledger says not applied".into());
            }
        }
    }
}

/// Once everybody has come to an end and written down what it owed, no living process has an attempt in flight.
pub fn held_by_somebody(stage: &Simulation) -> Vec<String> {
    // A failover takes settlements back.
    if stage.tally.counts().contains_key("failover") {
        return Vec::new();
    }
    let living: Vec<_> =
        lock(&stage.living).values().filter_map(|(_, holders, _)| holders.me().ok()).collect();
    let rows = rows(stage);
    let open = rows.values().filter_map(|effect| Some((effect, effect.open_attempt()?)));
    open.filter(|(_, attempt)| living.contains(&attempt.owner))
        .map(|(effect, _)| format!("held by somebody: nobody will settle {}, which is in flight", effect.id))
        .collect()
}

fn drained_is_final(stage: &Simulation, wrong: &mut Vec<String>) {
    // A failover may lose the fence itself, and nobody can promise for what was lost.
    if stage.tally.counts().contains_key("failover") {
        return;
    }
    let lifts = lock(&stage.lifts).clone();
    for drain in lock(&stage.drains).iter() {
        // Another cancel of the same run may lift the fence meanwhile, and ends the promise.
        let lifted = lifts
            .iter()
            .filter(|lift| lift.run == drain.run && lift.until >= drain.from)
            .map(|lift| lift.from);
        let until = lifted.chain([drain.until]).min().unwrap_or(drain.until);
        if stage.world.acted_between(&drain.run, drain.from, until) {
            wrong.push(format!("drained is final: {} acted after it was drained", drain.run));
        }
    }
}

fn replies_agree(stage: &Simulation, given: &[GivenAnswer], wrong: &mut Vec<String>) {
    let mut first: BTreeMap<EffectPlace, Vec<u8>> = BTreeMap::new();
    for answer in given.iter().filter(|answer| answer.ok) {
        if stage.plan.templates[answer.template].kind == CallKind::Convergent {
            continue;
        }
        let (Some(place), Some(reply)) = (answer.place, &answer.reply) else { continue };
        match first.get(&place) {
            None => drop(first.insert(place, reply.clone())),
            Some(known) if known == reply => {}
            Some(_) => wrong.push("one effect, one reply: two callers got different ones".into()),
        }
    }
}

fn faultless_is_doubtless(stage: &Simulation, journal: &[JournalLine], wrong: &mut Vec<String>) {
    if !stage.plan.faultless {
        return;
    }
    for line in journal {
        if matches!(line.kind.as_str(), "lapsed" | "settled_in_doubt" | "forgotten" | "late_answer") {
            wrong.push(format!("no fault, no doubt: the journal has {}", line.kind));
        }
    }
}

/// After the storm, with truthful rulings, everybody gets what was wanted and nothing stays open.
fn comes_to_rest(
    stage: &Simulation,
    given: &[GivenAnswer],
    rows: &BTreeMap<EffectPlace, Effect>,
    wrong: &mut Vec<String>,
) {
    if !wrong.is_empty() {
        return;
    }
    for effect in rows.values().filter(|effect| effect.is_open()) {
        // What the last act itself left in doubt can only come from a forgotten record.
        if !stage.tally.counts().contains_key("failover") {
            wrong.push(format!("comes to rest: {} is still {}", effect.id, effect.state.word()));
        }
    }
    let calls = stage.plan.processes.iter().flatten().flatten().count();
    let last = &given[given.len().saturating_sub(calls)..];
    let is_final = |answer: &GivenAnswer| match answer.code {
        // A reworded call whose like was done waits for somebody to say that it is meant.
        Some(Code::Drift | Code::Lookalike) => true,
        Some(Code::UpstreamRefused) => stage.plan.templates[answer.template].keeps_refusals,
        _ => false,
    };
    let unserved = last.iter().filter(|answer| !answer.ok && !is_final(answer)).count();
    if unserved > 0 && !stage.tally.counts().contains_key("failover") {
        wrong.push(format!("comes to rest: {unserved} of the last calls were not served"));
    }
}

fn rows(stage: &Simulation) -> BTreeMap<EffectPlace, Effect> {
    let page = block_on(stage.store.scan(By::All, None, PAGE_ROWS_MAX)).expect("the store is well");
    page.items
        .into_iter()
        .map(|row| {
            let (key, ordinal) = (row.key, row.ordinal);
            ((key, ordinal), decode(row).effect)
        })
        .collect()
}

/// The journal, the world and the answers, side by side.
pub fn story(stage: &Simulation) -> Vec<String> {
    let ids: BTreeMap<u128, EffectPlace> =
        rows(stage).into_iter().map(|(place, effect)| (effect.id.0, place)).collect();
    let short = |place: &EffectPlace| format!("{}/{}", &place.0.to_string()[..6], place.1);
    let mut story = vec![format!("{:?}", stage.plan.fates)];
    story.extend(stage.plan.templates.iter().map(|template| {
        let rule = &template.rule;
        format!("{:?} {:?} timeout {:?} inject {:?}", template.kind, rule.class, rule.timeout, rule.inject)
    }));
    story.extend(journal(stage).iter().map(|line| {
        let place = line.effect.and_then(|id| ids.get(&id)).map(short).unwrap_or_default();
        format!("{} {place} {} {}", line.at, line.kind, line.data)
    }));
    for (place, done) in stage.world.places() {
        story.push(format!("world {}: {done:?}", short(&place)));
    }
    story.extend(lock(&stage.drains).iter().map(|drain| format!("{drain:?}")));
    story.push(format!("acted: {:?}", stage.world.acts()));
    for given in lock(&stage.given).iter() {
        story.push(format!("given {given:?}"));
    }
    story
}

fn journal(stage: &Simulation) -> Vec<JournalLine> {
    let mut lines = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(stage.store.journal(after, 1_000)).expect("the store is well");
        lines.extend(page.items.into_iter().map(|(_, line)| line));
        match page.next {
            None => return lines,
            next => after = next,
        }
    }
}

/// What the ledger went through, so that a run of many seeds can show that it has seen everything.
fn count_journal(stage: &Simulation, journal: &[JournalLine]) {
    let mut lapsed: BTreeMap<u128, bool> = BTreeMap::new();
    for line in journal {
        let what = match line.kind.as_str() {
            "claimed" => "claimed",
            "resent" => "resent",
            "lapsed" if line.data.contains("holder_silent") => "lapsed by silence",
            "lapsed" => "lapsed",
            "settled_in_doubt" => "settled in doubt",
            "probed_yes" => "probed yes",
            "probed_no" => "probed no",
            "sender_gone" => "sender gone",
            "forgotten" => "forgotten",
            "late_answer" => "answer for a lost or older attempt",
            "prevented" => "prevented",
            "duplicate_detected" => "duplicate detected",
            "contradicted" => "contradicted",
            _ => "",
        };
        if !what.is_empty() {
            stage.tally.count(what);
        }
        let Some(effect) = line.effect else { continue };
        match line.kind.as_str() {
            "lapsed" => drop(lapsed.insert(effect, true)),
            "claimed" | "resent" => drop(lapsed.insert(effect, false)),
            kind if kind.starts_with("settled") && lapsed.get(&effect) == Some(&true) => {
                stage.tally.count("late settlement");
            }
            _ => {}
        }
    }
}
