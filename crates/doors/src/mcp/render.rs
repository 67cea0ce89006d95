//! From the answer of a call to the response that a client, and a model behind it, can use.

use super::call::{AGAIN, META_RECEIPT, ToolCall};
use super::frame::Frame;
use super::id::Id;
use super::message::{Message, MessageKind, text};
use super::result::words;
use super::tools::OutputSchema;
use crate::redact::Secrets;
use crate::wire::members::{Members, quoted};
use bytes::Bytes;
use semel_core::answer::{Answer, Code, OutcomeWord, Retry, Trouble, Would};
use semel_core::json;
use semel_core::policy::rule::Again;
use semel_core::wording;
use semel_gate::{GivenReply, Passed};
use serde_json::{Value, json};

/// The most that is kept of an answer: a document or a picture inside it fits. Of a larger one only the fact is kept,
/// for it could not be searched for secrets.
pub const REPLY_BYTES_MAX: usize = json::TEXT_BYTES_MAX;

/// A response as the ledger keeps it: its result or its error, as they came but for secrets.
pub fn recorded(answer: &Message, secrets: &Secrets) -> Option<Vec<u8>> {
    let body = answer.body.as_ref().filter(|body| body.len() <= REPLY_BYTES_MAX)?;
    let member = match answer.kind {
        MessageKind::Response { failed: true, .. } => "error",
        _ => "result",
    };
    let kept = secrets.out_of_result(text(body)).ok()?;
    let whole = format!(r#"{{"{member}":{kept}}}"#).into_bytes();
    Some(whole).filter(|whole| whole.len() <= REPLY_BYTES_MAX)
}

/// The surroundings of an answer.
#[derive(Debug)]
pub struct RenderContext<'a> {
    pub call: &'a ToolCall,
    pub output: &'a OutputSchema,
    pub look_with: LookWith<'a>,
    /// The model itself may say what it found out about a doubt.
    pub may_report: bool,
    /// How it repeats on purpose what is answered from the record.
    pub repeats: RepeatAdvice,
    /// The ledger is behind a server, where a person decides.
    pub ledger_elsewhere: bool,
    /// The process behind the tool is gone, and with it whatever could be looked with.
    pub server_has_ended: bool,
}

/// The tools of the same server that may show whether a call happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookWith<'a> {
    /// The one that the rule's probe asks.
    Probe(&'a str),
    /// Those that only read and speak of the same thing. Which of them shows it is not known.
    Reads(Vec<&'a str>),
    /// The server has not said what tools it has.
    NotKnown,
}

impl LookWith<'_> {
    /// `None`: there is nothing to name.
    fn words(&self) -> Option<String> {
        match self {
            LookWith::Probe(tool) => Some(format!("`{tool}`")),
            LookWith::Reads(tools) if !tools.is_empty() => {
                let tools: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
                Some(format!("a read-only tool ({})", tools.join(", ")))
            }
            LookWith::Reads(_) | LookWith::NotKnown => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatAdvice {
    /// The same call again runs: only an answer that may not have arrived is given from the record.
    Plainly,
    WithReason,
    /// Its rule, or its schema, leaves it to this one.
    NotByItself(Again),
}

pub fn response(passed: &Passed, live: Option<&Message>, around: &RenderContext<'_>) -> Frame {
    let answer = &passed.answer;
    if let (GivenReply::Live, Some(live)) = (&passed.reply, live) {
        return with_receipt(live, answer, &notices(answer, around), around);
    }
    if let Some(frame) = sep_3182(answer, around.call) {
        return frame;
    }
    let recorded = match &passed.reply {
        GivenReply::Recorded(bytes) => Message::parse(Bytes::copy_from_slice(bytes)).ok(),
        GivenReply::Live | GivenReply::None => None,
    };
    let recorded = recorded.map(|recorded| for_era(recorded, around.call));
    match recorded {
        Some(recorded) if answer.ok && !fits(&recorded, around.output) => {
            let result =
                recorded.body.as_ref().and_then(|body| Members::parse(text(body))).unwrap_or_default();
            answer_with(answer, Some(words(&result)).filter(|words| !words.trim().is_empty()), around)
        }
        Some(recorded) => with_receipt(&recorded, answer, &notices(answer, around), around),
        None if answer.outcome == OutcomeWord::Ran && answer.trouble.is_some() => {
            answer_with(answer, live.and_then(said).filter(|said| !said.is_empty()), around)
        }
        None => answer_alone(answer, around),
    }
}

/// A result that was recorded for a client of the other era, or was found by a probe. The stateless one wants to be
/// told that it is whole.
fn for_era(recorded: Message, call: &ToolCall) -> Message {
    let whole = matches!(recorded.kind, MessageKind::Response { failed: false, .. });
    let body = recorded.body.as_ref().filter(|_| whole && call.version.is_some());
    let members = body.and_then(|body| Members::parse(text(body)));
    let Some(mut members) = members.filter(|members| members.get("resultType").is_none()) else {
        return recorded;
    };
    members.set("resultType", quoted("complete"));
    let body = members.to_string();
    recorded.with_body(body.into())
}

/// The server's own words.
fn said(live: &Message) -> Option<String> {
    let members = Members::parse(text(live.body.as_ref()?))?;
    let words = match live.kind {
        MessageKind::Response { failed: true, .. } => members.text("message")?.into_owned(),
        _ => words(&members),
    };
    Some(words.trim().to_owned())
}

/// The server's own answer under the client's id.
pub fn as_it_came(answered: &Message, id: &Id) -> Frame {
    let body = Frame::from(answered.body.clone().unwrap_or_else(|| Bytes::from_static(b"null")));
    under(id, answered, body)
}

/// An answer with this body and the client's id, and with whatever else the server said beside its own. What is on
/// record has an envelope of semel's making.
fn under(id: &Id, answered: &Message, body: Frame) -> Frame {
    if let Some(frame) = answered.edited(Some(id), Some(body.clone())) {
        return frame;
    }
    match answered.kind {
        MessageKind::Response { failed: true, .. } => Frame::error(id, body),
        _ => Frame::result(id, body),
    }
}

/// A result or error, with the receipt in its `_meta` and what the model must see as text after its own.
fn with_receipt(
    answered: &Message,
    answer: &Answer,
    notices: &[String],
    around: &RenderContext<'_>,
) -> Frame {
    let id = &around.call.id;
    let Some(body) = &answered.body else { return answer_alone(answer, around) };
    let failed = matches!(answered.kind, MessageKind::Response { failed: true, .. });
    let Some(mut members) = Members::parse(text(body)).filter(|_| !failed) else {
        return as_it_came(answered, id);
    };
    let mut meta = members.object("_meta");
    meta.set(META_RECEIPT, receipt(answer));
    let meta = meta.to_string();
    let texts: Vec<String> = notices.iter().map(|text| block(text)).collect();
    if texts.is_empty() && members.get("_meta").is_none() && body.first() == Some(&b'{') {
        // Only a member is added in front: the rest is the server's own bytes, shared and not copied.
        let comma = if members.is_empty() { "" } else { "," };
        let head = Bytes::from(format!(r#"{{"_meta":{meta}{comma}"#));
        return under(id, answered, Frame::new([head, body.slice(1..)]));
    }
    members.set("_meta", meta);
    if let Some(content) = with_blocks(members.get("content"), &texts) {
        members.set("content", content);
    }
    under(id, answered, Frame::from(members.to_string()))
}

fn with_blocks(content: Option<&str>, texts: &[String]) -> Option<String> {
    let own = content.unwrap_or("[]").trim();
    let inside = own.strip_prefix('[')?.strip_suffix(']')?.trim();
    let own = (!inside.is_empty()).then_some(inside);
    let all: Vec<&str> = own.into_iter().chain(texts.iter().map(String::as_str)).collect();
    (!texts.is_empty()).then(|| format!("[{}]", all.join(",")))
}

fn block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

fn receipt(answer: &Answer) -> String {
    // The tool's answer stands beside it.
    let answer = Answer { data: Value::Null, ..answer.clone() };
    serde_json::to_string(&answer).expect("an answer has string keys")
}

/// The short visible notice of a replay, and of a success that is not what it seems: taken on and not done yet, not
/// confirmed, done twice. `_meta` alone does not reach every model.
fn notices(answer: &Answer, around: &RenderContext<'_>) -> Vec<String> {
    let id = answer.effect_id.map(|id| format!(" ({id})")).unwrap_or_default();
    let ran = answer.outcome == OutcomeWord::Ran && answer.ok;
    let replayed = matches!(answer.outcome, OutcomeWord::Replayed | OutcomeWord::Joined);
    // The same reason again is the same repetition, and one that met an answer on its way stands for that.
    let used = around.call.again.is_some();
    let again = match around.repeats {
        _ if !replayed => String::new(),
        RepeatAdvice::WithReason if used => format!(" Another repeat needs a new reason in {AGAIN}."),
        RepeatAdvice::WithReason => format!(" To repeat it, say why in {AGAIN}."),
        RepeatAdvice::Plainly => " To repeat it, call it again.".to_owned(),
        RepeatAdvice::NotByItself(Again::Never) => " Its rule allows no repeat.".to_owned(),
        RepeatAdvice::NotByItself(_) if around.ledger_elsewhere => {
            " A person may allow a repeat (semel ledger on the server).".to_owned()
        }
        RepeatAdvice::NotByItself(_) => " A person may allow a repeat (semel ledger).".to_owned(),
    };
    let reason = answer.reason.iter().filter(|_| replayed || ran);
    let reason = reason.map(|reason| format!("[semel] {}{id}.{again}", capital(reason)));
    let repeat = answer.possible_repeat.then(|| format!("[semel] {}{id}.", wording::POSSIBLE_REPEAT));
    reason.chain(repeat).collect()
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Whether a recorded result still is what the tool's output schema promises, as far as can be seen at a glance.
fn fits(recorded: &Message, output: &OutputSchema) -> bool {
    if *output == OutputSchema::Free {
        return true;
    }
    let members = recorded.body.as_ref().and_then(|body| Members::parse(text(body))).unwrap_or_default();
    members.is_true("isError") || members.get("structuredContent").is_some_and(|it| output.may_be(it))
}

/// The answer object where there is no reply to give: a hold, a refusal, a success whose reply is not known.
fn answer_alone(answer: &Answer, around: &RenderContext<'_>) -> Frame {
    answer_with(answer, None, around)
}

/// The same with what is known of the reply, as text: its form does not fit the tool's schema, or it said too little
/// for the outcome to be known from it.
fn answer_with(answer: &Answer, known: Option<String>, around: &RenderContext<'_>) -> Frame {
    let mut answer = answer.clone();
    let mut own_words = None;
    let words = match &mut answer.trouble {
        Some(trouble) => {
            for_this_door(trouble, around);
            own_words = known.map(|known| format!("The tool itself said: {known}"));
            trouble_words(trouble, answer.effect_id.map(|id| id.to_string()))
        }
        None if answer.dry_run.is_some() => dry_run_words(&answer),
        None => {
            let id = answer.effect_id.map(|id| format!(" ({id})")).unwrap_or_default();
            let reason = answer.reason.as_deref().unwrap_or("done");
            let reply = known.map_or_else(
                || "its reply is not available.".to_owned(),
                |known| format!("this is left of its reply: {}", known.trim()),
            );
            format!("[semel] {}{id}. Do not call it again; {reply}", capital(reason))
        }
    };
    // A client that knows an output schema takes a result without it only as an error.
    let is_error = !answer.ok || matches!(around.output, OutputSchema::Structured { .. });
    let structure = match around.output {
        OutputSchema::Any if answer.ok => {
            let object = serde_json::to_string(&answer).expect("an answer has string keys");
            format!(r#""structuredContent":{object},"#)
        }
        _ => String::new(),
    };
    let mut blocks = vec![block(&words)];
    blocks.extend(own_words.as_deref().map(block));
    let kind = if around.call.version.is_some() { r#""resultType":"complete","# } else { "" };
    let result = format!(
        r#"{{{kind}"content":[{}],{structure}"isError":{is_error},"_meta":{{"{META_RECEIPT}":{}}}}}"#,
        blocks.join(","),
        receipt(&answer)
    );
    Frame::result(&around.call.id, Frame::from(result))
}

fn dry_run_words(answer: &Answer) -> String {
    let would = answer.dry_run.as_ref().map(|dry_run| dry_run.would);
    let would = match would {
        Some(Would::Run) => "The call would run",
        Some(Would::Replay) => "The call would be answered from the record",
        Some(Would::Wait) => "The call would wait for the same call, which is running",
        Some(Would::Hold) => "The call would be held",
        Some(Would::Refuse) | None => "The call would be refused",
    };
    let mut words = format!("[semel] Dry run. Nothing was sent. {would} ({}).", answer.effect);
    let changes = answer.dry_run.iter().flat_map(|dry_run| &dry_run.changes);
    let changes =
        changes.map(|change| change["what"].as_str().map_or_else(|| change.to_string(), str::to_owned));
    for line in answer.reason.clone().into_iter().chain(changes) {
        words.push_str("\n- ");
        words.push_str(&line);
    }
    words
}

/// Advice for a model at this door, where the general one says less.
fn for_this_door(trouble: &mut Trouble, around: &RenderContext<'_>) {
    if around.server_has_ended && matches!(trouble.code, Code::InDoubt | Code::BudgetSpent | Code::NotStarted)
    {
        return server_has_ended(trouble, &around.look_with);
    }
    look_with(trouble, &around.look_with);
    if trouble.code == Code::InDoubt && trouble.is_it_safe_to_retry == Retry::No && around.may_report {
        trouble.next_step.push_str(" Then record the result with `semel_report`.");
    }
    if trouble.code == Code::Drift && around.repeats == RepeatAdvice::WithReason {
        let meant = format!("If you mean this one too, make the same call and say why in `{AGAIN}`.");
        trouble.next_step = trouble.next_step.replace(wording::OR_TELL, &meant);
    }
}

/// None of its tools answers any more, and semel starts it only when it starts itself.
fn server_has_ended(trouble: &mut Trouble, look_with: &LookWith<'_>) {
    let restart = "The server behind this tool has ended. Its tools answer again once semel is restarted.";
    trouble.next_step = match trouble.code {
        Code::NotStarted => format!("{restart} Tell the user so."),
        // The same call settles it, once there is a server to make it to.
        _ if trouble.is_it_safe_to_retry == Retry::Wait => {
            format!("{restart} Tell the user so. {}", trouble.next_step)
        }
        _ => {
            let then = match look_with.words() {
                Some(tools) => format!("and once it is back, check with {tools} whether it happened."),
                None => "and that it needs a decision.".to_owned(),
            };
            format!("Do not call it again. {restart} Tell the user so, {then}")
        }
    };
    trouble.human_next_step = match trouble.code {
        Code::NotStarted => "Start semel again; the server starts with it.".to_owned(),
        _ => format!("Start semel again; the server starts with it. Then: {}", trouble.human_next_step),
    };
}

/// Names the tools to look with, or says that none is known: another tool would show nothing, and nothing is no proof.
fn look_with(trouble: &mut Trouble, look_with: &LookWith<'_>) {
    if !matches!(trouble.code, Code::InDoubt | Code::BudgetSpent) {
        return;
    }
    const GENERAL: &str = "Check with a read-only tool whether it happened";
    let advice = match look_with.words() {
        Some(tools) => format!("Check with {tools} whether it happened"),
        None if *look_with == LookWith::NotKnown => return,
        None => {
            "No read-only tool of this server is known to show it: check in another way whether it happened"
                .to_owned()
        }
    };
    trouble.next_step = trouble.next_step.replace(GENERAL, &advice);
    if let LookWith::Probe(tool) = look_with
        && !trouble.next_step.contains(tool)
    {
        trouble.next_step.push_str(&format!(" `{tool}` may show whether it happened."));
    }
}

fn trouble_words(trouble: &Trouble, id: Option<String>) -> String {
    let safe = match trouble.is_it_safe_to_retry {
        Retry::Yes => "yes",
        Retry::No => "no",
        Retry::Wait => "wait",
    };
    let id = id.map(|id| format!(" {id}")).unwrap_or_default();
    format!(
        "[semel] {}{id}: {} Safe to retry: {safe}. {}",
        trouble.code, trouble.what_happened, trouble.next_step
    )
}

/// SEP-3182 has error shapes of its own for calls that came with its key.
fn sep_3182(answer: &Answer, call: &ToolCall) -> Option<Frame> {
    let key = call.key.as_ref()?;
    let trouble = answer.trouble.as_ref()?;
    // Application codes, outside the ranges that JSON-RPC and MCP keep for themselves.
    let (code, kind) = match trouble.code {
        Code::InFlight => (409, "idempotency_key_in_progress"),
        Code::Drift => (422, "idempotency_key_conflict"),
        _ => return None,
    };
    let data = json!({"type": kind, "idempotencyKey": key.as_str(), META_RECEIPT: answer});
    Some(Frame::refusal(&call.id, code, &trouble.what_happened, Some(data)))
}

#[cfg(test)]
mod tests;
