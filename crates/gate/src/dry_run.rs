//! Dry run and observe mode: what would happen, without claiming anything.

use crate::call::GateCall;
use crate::caller_key::ResolvedKey;
use crate::look::Look;
use crate::lookalike::InTheWay;
use crate::upstream::Upstream;
use crate::{Error, Gate};
use semel_core::answer::{Answer, DryRun, EffectWord, OutcomeWord, Would};
use semel_core::class::Class;
use semel_core::decide::{Decision, Past, Refusal, Replay, answers_repeats, decide};
use semel_core::digest::Digest;
use semel_core::effect::{Evidence, State};
use semel_core::intent::Intent;
use semel_core::policy::rule::Rule;
use semel_core::subject::in_short;
use semel_core::time::At;
use semel_ledger::RecordSnapshot;
use semel_ledger::holders::Liveness;
use semel_ledger::journal;
use semel_ledger::observed::Sightings;
use serde_json::json;

/// The ledger's answer about a call.
struct Forecast {
    dry_run: DryRun,
    snapshot: RecordSnapshot,
    /// Nothing speaks against a claim.
    claims: bool,
}

/// Something in the way of a claim.
enum Obstacle {
    /// The effect that the call is, under another name.
    Same(RecordSnapshot),
    Other(Would, String),
}

impl Gate {
    /// The decision, as a person would put it.
    async fn forecast(&self, intent: &Intent, rule: &Rule) -> Result<Forecast, Error> {
        let mut survey = self.survey_unwritten(intent, rule).await?;
        let mut decision = decide(survey.effect(), intent, rule, &survey.situation(Past::default()));
        let now = survey.now();
        let mut in_the_way = None;
        if let Decision::Claim(_) = decision {
            in_the_way = match self.in_the_way(intent, rule, survey.snapshot.key, now).await? {
                Some(Obstacle::Same(record)) => {
                    let key = ResolvedKey::plain(record.key);
                    survey = self.survey_of(intent, rule, key, record, now).await?;
                    let situation = survey.situation(Past::default());
                    decision = match survey.effect() {
                        Some(effect) => decide(Some(effect), &intent.as_effect(effect), rule, &situation),
                        None => decision,
                    };
                    None
                }
                Some(Obstacle::Other(would, change)) => Some((would, change)),
                None => None,
            };
        }
        let snapshot = survey.snapshot;
        let holder = match snapshot.effect().and_then(|effect| effect.open_attempt()) {
            Some(attempt) => self.ledger.liveness_of(attempt).await?,
            None => Liveness::Alive,
        };
        let claims = matches!(decision, Decision::Claim(_)) && in_the_way.is_none();
        let (would, change) = match decision {
            Decision::Pass => (Would::Run, pass_through(intent)),
            Decision::Claim(_) => in_the_way.unwrap_or_else(|| {
                (Would::Run, format!("run {} ({})", intent.action, in_short(&intent.subject)))
            }),
            Decision::Resend => (Would::Run, format!("send {} again after an unclear answer", intent.action)),
            Decision::Join(_) if holder != Liveness::Alive => {
                (Would::Hold, "hold it: the process that ran it is gone, or silent".into())
            }
            Decision::Join(_)
            | Decision::AnswerOwn
            | Decision::AnswerJoined
            | Decision::AnswerSentEarlier
            | Decision::StayInDoubt => (Would::Wait, "wait for the same call, which is running".into()),
            Decision::Look if rule.probe.is_some() => {
                (Would::Hold, "ask the probe whether it happened".into())
            }
            Decision::Look | Decision::Unremembered => {
                (Would::Hold, "hold it: it may have happened already".into())
            }
            Decision::ReplayRefusal => {
                (Would::Replay, "answer with the refusal on record; nothing changes".into())
            }
            Decision::Replay(Replay::Repeat) if self.superseded(intent, rule, &snapshot).await?.is_some() => {
                (Would::Hold, "hold it: a later call has removed it".into())
            }
            Decision::Replay(_) | Decision::ReplayEarlier(..) => {
                (Would::Replay, "answer from the record; nothing changes".into())
            }
            Decision::Refuse(refusal) => (Would::Refuse, format!("refuse it: {}", why(&refusal))),
        };
        let changes = match would {
            Would::Run => vec![json!({"action": intent.action, "what": change})],
            _ => vec![json!({"what": change})],
        };
        let dry_run = DryRun { would, intent_digest: intent.digest, rule: rule.origin.to_string(), changes };
        Ok(Forecast { dry_run, snapshot, claims })
    }

    /// Writes down what would have been decided about a call that passes as it is.
    pub async fn observed(&self, intent: &Intent, rule: &Rule) {
        if rule.class == Class::Read {
            return;
        }
        let now = self.clock.now();
        let counts = |first: At| intent.window.is_none_or(|window| now < first.plus(window));
        // Observing must be safe to switch on anywhere: a ledger in trouble does not stop the call.
        let Ok(Forecast { dry_run: would, .. }) = self.forecast(intent, rule).await else { return };
        let line = |before: Option<Sightings>| {
            let mut data = json!({
                "would": would.would, "action": intent.action, "subject": intent.subject,
            });
            if let Some(Sightings { first, count }) = before {
                data["repeats"] = json!({"first_at": first.to_string(), "seen": count});
                // As if the first had succeeded, and its answer had arrived.
                if would.would == Would::Run
                    && intent.again.is_none()
                    && answers_repeats(intent, rule, now.since(first))
                {
                    data["would"] = json!(Would::Replay);
                }
            }
            journal::note("observed", None, intent.run_key, data, now)
        };
        let _unrecorded_is_fine = self.ledger.observed(intent.key, now, counts, line).await;
    }

    /// Other effects in the way of a claim: an open effect of the same identity elsewhere, or a doubt that it may be a
    /// rewording of.
    async fn in_the_way(
        &self,
        intent: &Intent,
        rule: &Rule,
        key: Digest,
        now: At,
    ) -> Result<Option<Obstacle>, Error> {
        let relative = match rule.class {
            Class::Generate => None,
            _ => self.ledger.open_relative(intent.family, key).await?,
        };
        if let Some(relative) = relative {
            let runs = match relative.effect.open_attempt() {
                Some(attempt) => {
                    now < attempt.deadline && self.ledger.liveness_of(attempt).await? == Liveness::Alive
                }
                None => false,
            };
            return Ok(Some(match runs {
                true => {
                    let what = "wait for the same call of another run, which is running";
                    Obstacle::Other(Would::Wait, what.into())
                }
                false => {
                    let what = "hold it: the same call of another run may have happened";
                    Obstacle::Other(Would::Hold, what.into())
                }
            }));
        }
        let Some(outline) = intent.alike.key() else { return Ok(None) };
        let (_, in_the_way) = self.lookalike(intent, rule, outline, key).await?;
        Ok(in_the_way.map(|in_the_way| match in_the_way {
            InTheWay::Same(record) => Obstacle::Same(record),
            InTheWay::Running(_) => {
                Obstacle::Other(Would::Wait, "wait for a call that it looks like, which is running".into())
            }
            InTheWay::Alike(..) => {
                Obstacle::Other(Would::Hold, "hold it: it looks like a call that was made before".into())
            }
        }))
    }

    /// Answers a dry run. It sends no effect and writes nothing; but it asks what the call would ask first.
    pub async fn dry_run(
        &self,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut dyn Upstream,
    ) -> Result<Answer, Error> {
        self.pending_deliveries.settled(intent.key, &*self.clock).await;
        let Forecast { dry_run: mut would, snapshot, claims } = self.forecast(intent, rule).await?;
        let look = Look::default();
        let mut call = GateCall::new(intent, rule, upstream, &look, self.clock.elapsed());
        let already_there = claims && self.probe_before_claim(&mut call, &snapshot).await.is_some();
        if already_there {
            would.would = Would::Replay;
            would.changes = vec![json!({"what": "skip it: a probe found it there already; nothing changes"})];
        }
        let word = match would.would {
            Would::Replay | Would::Refuse | Would::Hold | Would::Wait => EffectWord::Noop,
            Would::Run => rule.effect_word().unwrap_or(match rule.class {
                Class::Read => EffectWord::None,
                _ => EffectWord::Updated,
            }),
        };
        let evidence = match snapshot.effect().map(|effect| &effect.state) {
            _ if already_there => Some(Evidence::Probed),
            Some(State::Applied(applied)) => Some(applied.evidence),
            _ => None,
        };
        Ok(Answer {
            effect_id: snapshot.effect().map(|effect| effect.id),
            evidence,
            dry_run: Some(would),
            undone_by: snapshot.effect().and_then(|effect| effect.undone).map(|undone| undone.by),
            ..Answer::plain(true, word.would(), OutcomeWord::DryRun, rule.tier())
        })
    }
}

/// Answers a dry run of a read, which no ledger is asked about.
pub fn dry_run_of_read(intent: &Intent, rule: &Rule) -> Answer {
    let changes = vec![json!({"action": intent.action, "what": pass_through(intent)})];
    let rule_name = rule.origin.to_string();
    let dry_run = DryRun { would: Would::Run, intent_digest: intent.digest, rule: rule_name, changes };
    let word = rule.effect_word().unwrap_or(EffectWord::None).would();
    Answer { dry_run: Some(dry_run), ..Answer::plain(true, word, OutcomeWord::DryRun, rule.tier()) }
}

fn pass_through(intent: &Intent) -> String {
    format!("pass {} through, as a read", intent.action)
}

fn why(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Cancelled { .. } => "its run was cancelled".into(),
        Refusal::Drift { paths } => {
            format!("the same intent came with other arguments ({})", paths.join(", "))
        }
        Refusal::Refuted => "it had been reported as done and was disproved".into(),
        Refusal::BudgetSpent => "it was sent too often without a clear answer".into(),
        Refusal::AgainNotAllowed(_) => "its rule leaves repeats to a person, or to nobody".into(),
        Refusal::Forgotten => "its run did it before the conversation was shortened or resumed".into(),
    }
}
