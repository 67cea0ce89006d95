//! Follows the sessions of one file: pairs calls with their answers, and notices stops and claims.

use super::audited_call::{AuditedCall, LinePlace, ListingCall, RemovalCall, SessionHistory};
use crate::ending::{Ending, ListedThing, ResultNames};
use crate::judge::{Judge, Judgement, Removal};
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::judgement::error_text::{self, ErrorReading};
use semel_core::judgement::superseded;
use semel_core::time::At;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Calls that wait for their answer. A transcript with more open at once is cut short by its program; the oldest are
/// then without an answer.
const PENDING_MAX: usize = 4_096;
/// Call ids that are remembered, since logs of requests repeat the whole conversation each time.
const IDS_MAX: usize = 65_536;
/// Sessions that are followed at once; of more the half that was silent longest is let go.
const SESSIONS_MAX: usize = 16_384;

/// Shorter ids are counted up by their program, and two sessions have the same.
const UNIQUE_ID_LENGTH: usize = 16;

/// So many names of a result are remembered for removals, which keeps a call near a kilobyte. Results name the thing
/// that they made at their beginning.
const REPLY_MARKS_MAX: usize = 64;

/// A remark about one call that is no duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    EffectAfterStop,
    /// The model said that it was done, and every try had failed.
    ClaimWithoutEffect,
}

#[derive(Debug, Clone)]
pub struct Remark {
    pub kind: RemarkKind,
    pub action: String,
    pub place: LinePlace,
}

/// The records that a file gives.
#[derive(Debug, Default)]
pub struct Tracked {
    pub occurrences: Vec<AuditedCall>,
    pub removals: Vec<RemovalCall>,
    pub listings: Vec<ListingCall>,
    pub remarks: Vec<Remark>,
    pub tool_calls: u64,
    pub without_arguments: u64,
    pub sessions: HashSet<u64>,
}

#[derive(Debug)]
pub struct Tracker<'j> {
    judge: &'j Judge,
    file: u32,
    in_conversation: bool,
    /// The session of entries that name none.
    own_session: u64,
    sessions: HashMap<u64, SessionState>,
    pending: HashMap<(u64, u64), Pending>,
    ids: HashSet<(u64, u64)>,
    order: u64,
    tracked: Tracked,
}

#[derive(Debug, Default)]
struct SessionState {
    user_messages: u32,
    compactions: u32,
    reads: HashMap<u64, u32>,
    /// Servers with a consequential call whose answer was lost.
    lost_at: HashSet<u64>,
    is_stopped: bool,
    /// Since the last message of the user: a consequential call that failed, and whether any happened.
    failed: Option<(String, LinePlace)>,
    happened: bool,
    /// The model's last words after that failure say that it is done.
    claims_success: bool,
    /// The order of its last entry.
    touched: u64,
}

#[derive(Debug)]
struct Pending {
    unique_id: Option<u64>,
    actions: Vec<ActionCall>,
    at: Option<At>,
    place: LinePlace,
    turn: Option<u64>,
    resends: u32,
    user_messages: u32,
    compactions: u32,
    reads: Vec<u32>,
    was_stopped: bool,
}

impl<'j> Tracker<'j> {
    pub fn new(judge: &'j Judge, file: u32, name: &str, in_conversation: bool) -> Tracker<'j> {
        Tracker {
            judge,
            file,
            in_conversation,
            own_session: mark(name),
            sessions: HashMap::new(),
            pending: HashMap::new(),
            ids: HashSet::new(),
            order: 0,
            tracked: Tracked::default(),
        }
    }

    pub fn take(&mut self, line: u64, entry: TranscriptEntry<'_>) {
        let session = entry.session.as_deref().map_or(self.own_session, mark);
        self.order += 1;
        let place = LinePlace { file: self.file, line, order: self.order };
        self.touch(session);
        match entry.event {
            TranscriptEvent::RecordedCall(call) => self.begin(session, place, entry.at, call),
            TranscriptEvent::ToolAnswer(answer) => self.end(session, &answer),
            TranscriptEvent::UserMessage => {
                self.check_claim(session);
                let state = self.sessions.entry(session).or_default();
                state.user_messages += 1;
                state.is_stopped = false;
            }
            TranscriptEvent::UserStop => {
                self.sessions.entry(session).or_default().is_stopped = true;
                for ((owner, _), pending) in &mut self.pending {
                    pending.was_stopped |= *owner == session;
                }
            }
            TranscriptEvent::Compaction => self.sessions.entry(session).or_default().compactions += 1,
            TranscriptEvent::ModelText(text) => {
                let state = self.sessions.entry(session).or_default();
                state.claims_success = state.failed.is_some() && claims_success(&text);
            }
        }
    }

    /// The records so far. Calls without an answer stay open.
    pub fn drain(&mut self) -> Tracked {
        std::mem::take(&mut self.tracked)
    }

    /// The records that are left at the end of the file.
    pub fn finish(mut self) -> Tracked {
        let open: Vec<(u64, Pending)> =
            self.pending.drain().map(|((session, _), pending)| (session, pending)).collect();
        for (session, pending) in open {
            self.settle(session, pending, None);
        }
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.check_claim(session);
        }
        self.tracked
    }

    fn touch(&mut self, session: u64) {
        self.sessions.entry(session).or_default().touched = self.order;
        if self.sessions.len() <= SESSIONS_MAX {
            return;
        }
        let mut touched: Vec<u64> = self.sessions.values().map(|state| state.touched).collect();
        let (_, median, _) = touched.select_nth_unstable(SESSIONS_MAX / 2);
        let silent = self.sessions.iter().filter(|(_, state)| state.touched < *median);
        for session in silent.map(|(session, _)| *session).collect::<Vec<_>>() {
            self.check_claim(session);
            self.sessions.remove(&session);
        }
    }

    fn begin(&mut self, session: u64, place: LinePlace, at: Option<At>, call: RecordedCall<'_>) {
        let key = (session, mark(&call.id));
        if self.ids.len() >= IDS_MAX {
            self.ids.clear();
        }
        if !self.ids.insert(key) && self.in_conversation {
            return;
        }
        self.tracked.tool_calls += 1;
        self.tracked.sessions.insert(session);
        let turn = call.turn.as_deref().map(mark);
        if self.in_conversation {
            self.close_earlier_turns(session, turn);
        }
        let state = self.sessions.entry(session).or_default();
        let reads = call.actions.iter().map(|call| state.reads.get(&server_mark(call)).copied().unwrap_or(0));
        let pending = Pending {
            unique_id: (self.in_conversation && call.id.len() >= UNIQUE_ID_LENGTH).then_some(key.1),
            reads: reads.collect(),
            actions: call.actions,
            at,
            place,
            turn,
            resends: call.resends,
            user_messages: state.user_messages,
            compactions: state.compactions,
            was_stopped: state.is_stopped,
        };
        if self.pending.len() >= PENDING_MAX {
            let oldest = self.pending.iter().min_by_key(|(_, pending)| pending.place).map(|(key, _)| *key);
            if let Some((session, pending)) = oldest.and_then(|key| Some((key.0, self.pending.remove(&key)?)))
            {
                self.settle(session, pending, None);
            }
        }
        // A log of execution may use an id again while the first call has no answer.
        if let Some(earlier) = self.pending.insert(key, pending) {
            self.settle(session, earlier, None);
        }
    }

    /// A model goes on only once its calls are answered, so calls of earlier messages will get no answer.
    fn close_earlier_turns(&mut self, session: u64, turn: Option<u64>) {
        let is_over = |(owner, _): &(u64, u64), pending: &Pending| {
            *owner == session && pending.turn.is_some() && pending.turn != turn
        };
        let over: Vec<(u64, u64)> =
            self.pending.iter().filter(|(key, pending)| is_over(key, pending)).map(|(key, _)| *key).collect();
        for key in over {
            if let Some(pending) = self.pending.remove(&key) {
                self.settle(session, pending, None);
            }
        }
    }

    fn end(&mut self, session: u64, answer: &ToolAnswer<'_>) {
        if let Some(pending) = self.pending.remove(&(session, mark(&answer.id))) {
            self.settle(session, pending, Some(answer));
        }
    }

    fn settle(&mut self, session: u64, pending: Pending, answer: Option<&ToolAnswer<'_>>) {
        let state = self.sessions.entry(session).or_default();
        for (call, reads) in pending.actions.iter().zip(&pending.reads) {
            let mut judged = match self.judge.judge(call) {
                Judgement::Effect(judged) => judged,
                Judgement::Repeatable => continue,
                Judgement::NotComparable => {
                    self.tracked.without_arguments += 1;
                    continue;
                }
                Judgement::Removal(Removal { server, named }) => {
                    if Ending::of(answer, &call.action, Class::Convergent).may_have_happened() {
                        let (at, place) = (pending.at, pending.place);
                        self.tracked.removals.push(RemovalCall { server, named, at, place });
                    }
                    continue;
                }
                Judgement::Read => {
                    let server = server_mark(call);
                    if let Some(answer) = answer
                        && Ending::of(Some(answer), &call.action, Class::Read) == Ending::Applied
                    {
                        *state.reads.entry(server).or_default() += 1;
                        if state.lost_at.contains(&server) {
                            let secret = self.judge.secret();
                            let asked = call.arguments.canonical();
                            self.tracked.listings.push(ListingCall {
                                server,
                                asked: superseded::marks_in_reply(secret, &asked)
                                    .take(REPLY_MARKS_MAX)
                                    .collect(),
                                things: ListedThing::all_in(&answer.text.read(), secret),
                                at: pending.at,
                                place: pending.place,
                            });
                        }
                    }
                    continue;
                }
            };
            let ending = Ending::of(answer, &call.action, judged.class);
            state.happened |= ending.may_have_happened();
            if !ending.may_have_happened() && judged.class == Class::Consequential {
                state.failed.get_or_insert((judged.action.clone(), pending.place));
            }
            if pending.was_stopped && ending == Ending::Applied {
                let remark = Remark {
                    kind: RemarkKind::EffectAfterStop,
                    action: judged.action.clone(),
                    place: pending.place,
                };
                self.tracked.remarks.push(remark);
            }
            let (mut names, mut reply_marks) = (ResultNames::default(), Vec::new());
            if let (Ending::Applied, Some(answer)) = (ending, answer) {
                let text = answer.text.read();
                names = ResultNames::of(&text, self.judge.secret());
                if judged.removals.is_some() {
                    let marks = superseded::marks_in_reply(self.judge.secret(), &text);
                    reply_marks = marks.take(REPLY_MARKS_MAX).collect();
                }
            }
            let (server, mut about) = (server_mark(call), Vec::new());
            if ending.is_open() && judged.class == Class::Consequential {
                state.lost_at.insert(server);
                about = superseded::naming_marks(self.judge.secret(), &judged.marks);
            }
            let removal = judged.removal.take().filter(|_| ending.may_have_happened());
            if let Some(Removal { server, named }) = removal {
                let (at, place) = (pending.at, pending.place);
                self.tracked.removals.push(RemovalCall { server, named, at, place });
            }
            self.tracked.occurrences.push(AuditedCall {
                judged,
                ending,
                names,
                reply_marks,
                server,
                about,
                at: pending.at,
                place: pending.place,
                session,
                unique_id: pending.unique_id,
                turn: pending.turn,
                in_conversation: self.in_conversation,
                resends: pending.resends,
                history: SessionHistory {
                    user_messages: pending.user_messages,
                    compactions: pending.compactions,
                    reads: *reads,
                },
            });
        }
    }

    /// At the end of a turn: the model says that it is done, and all that it tried had failed.
    fn check_claim(&mut self, session: u64) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let (failed, happened) = (state.failed.take(), std::mem::take(&mut state.happened));
        if let (Some((action, place)), true, false) =
            (failed, std::mem::take(&mut state.claims_success), happened)
        {
            self.tracked.remarks.push(Remark { kind: RemarkKind::ClaimWithoutEffect, action, place });
        }
    }
}

/// Words that take a claim back.
const DENIALS: [&str; 8] = [" not ", "n't ", "fail", "unable", "error", "declined", "refused", "sorry"];

fn claims_success(text: &str) -> bool {
    let lower = text.to_lowercase();
    matches!(error_text::read(text), ErrorReading::Done(_))
        && !DENIALS.iter().any(|word| lower.contains(word))
}

fn server_mark(call: &ActionCall) -> u64 {
    mark(superseded::server(&call.action).unwrap_or(&call.action))
}

fn mark(text: &str) -> u64 {
    Digest::plain(text.as_bytes()).short()
}
