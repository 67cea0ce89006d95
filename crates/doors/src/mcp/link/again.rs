//! Second answers: what they may follow, how many are waited for, and how large they may be.

use crate::mcp::members::Members;
use crate::mcp::message::{Kind, Message, text};
use std::collections::VecDeque;

/// How many requests are remembered beyond their answers.
pub const AGAIN_MAX: usize = 32;

/// What is large is hardly news, and is not kept for it.
pub const AGAIN_BYTES_MAX: usize = 64 * 1024;

pub fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= AGAIN_MAX {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// Whether a response says so; what it says besides is read elsewhere.
pub fn is_success(response: &Message) -> bool {
    if let Kind::Response { failed: true, .. } = response.kind {
        return false;
    }
    let says_no = |result: Members<'_>| {
        result.is_true("isError") || result.text("resultType").is_some_and(|kind| kind == "input_required")
    };
    !response.body.as_ref().and_then(|body| Members::parse(text(body))).is_some_and(says_no)
}
