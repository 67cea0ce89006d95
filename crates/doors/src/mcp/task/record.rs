//! The record of a task: its handle, for a repeat that wants a task, and beside it its end, for any other.

use crate::mcp::call::ToolCall;
use crate::mcp::classify::{TaskEra, TaskHandle, handle_in};
use crate::mcp::render::REPLY_BYTES_MAX;
use crate::reply::tool::END;
use crate::wire::members::Members;
use semel_gate::GivenReply;

/// The handle with the end beside it, as far as both are small enough to be kept.
pub fn with_end(handle: Vec<u8>, end: &[u8]) -> Vec<u8> {
    let both = std::str::from_utf8(&handle).ok().and_then(Members::parse).and_then(|mut whole| {
        whole.set(END, std::str::from_utf8(end).ok()?.to_owned());
        Some(whole.to_string().into_bytes())
    });
    both.filter(|both| both.len() <= REPLY_BYTES_MAX).unwrap_or(handle)
}

/// The part of a recorded task that a call is given.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordedTask {
    /// The handle of the task of this id: its end is still to be asked for.
    Handle(String),
    /// Its end: nothing is left to be asked.
    End(Vec<u8>),
}

/// `None`: the reply is not that of a task.
pub fn on_record(reply: &GivenReply, call: &ToolCall) -> Option<RecordedTask> {
    let GivenReply::Recorded(bytes) = reply else { return None };
    let whole = Members::parse(std::str::from_utf8(bytes).ok()?)?;
    let TaskHandle { id, era, .. } = handle_in(whole.get("result")?)?;
    let wants_handle = match era {
        TaskEra::Result => call.wants_task,
        TaskEra::Inline => call.takes_tasks,
    };
    Some(match whole.get(END).filter(|_| !wants_handle) {
        Some(end) => RecordedTask::End(end.as_bytes().to_vec()),
        None => RecordedTask::Handle(id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::message::Message;
    use bytes::Bytes;

    const OF_2025: &str = r#"{"result":{"task":{"taskId":"t"}}}"#;
    const OF_2026: &str = r#"{"result":{"resultType":"task","taskId":"t"}}"#;
    const END_OF_IT: &str = r#"{"result":{"content":[]}}"#;

    fn call(params: &str) -> ToolCall {
        let text = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{params}}}"#);
        let message = Message::parse(Bytes::from(text)).unwrap();
        ToolCall::read(message.request_id().unwrap(), &message, |_| None).unwrap()
    }

    #[test]
    fn who_can_do_something_with_the_handle_gets_it_and_any_other_call_the_end() {
        let plain = call(r#"{"name":"x"}"#);
        let of_2025 = call(r#"{"name":"x","task":{}}"#);
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let of_2026 = call(&format!(
            r#"{{"name":"x","_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":
               {{"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}}}}}"#
        ));
        let without = call(&format!(r#"{{"name":"x","_meta":{{{version}}}}}"#));
        let given = |handle: &str, end: Option<&str>, call: &ToolCall| {
            let kept = handle.as_bytes().to_vec();
            let kept = end.map_or(kept.clone(), |end| with_end(kept, end.as_bytes()));
            on_record(&GivenReply::Recorded(kept), call)
        };
        let (the_handle, the_end) =
            (Some(RecordedTask::Handle("t".into())), Some(RecordedTask::End(END_OF_IT.as_bytes().to_vec())));
        for (handle, takes_it, takes_end) in
            [(OF_2025, &of_2025, [&plain, &of_2026]), (OF_2026, &of_2026, [&plain, &of_2025])]
        {
            assert_eq!(given(handle, Some(END_OF_IT), takes_it), the_handle);
            for call in takes_end {
                assert_eq!(given(handle, Some(END_OF_IT), call), the_end);
                assert_eq!(given(handle, None, call), the_handle, "nothing else is known");
            }
        }
        assert_eq!(given(OF_2026, Some(END_OF_IT), &without), the_end, "it has not said that it takes tasks");
        assert_eq!(given(END_OF_IT, None, &plain), None);
    }

    #[test]
    fn an_end_that_is_too_large_is_not_kept() {
        let large = format!(r#"{{"result":{{"content":[],"x":"{}"}}}}"#, "x".repeat(REPLY_BYTES_MAX));
        assert_eq!(with_end(OF_2025.into(), large.as_bytes()), OF_2025.as_bytes());
    }
}
