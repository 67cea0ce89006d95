//! Where clients come in: `stdio` and `http` read messages, `dispatch` says what becomes of each.

mod answer_check;
mod dispatch;
pub mod http;
mod pending_requests;
pub mod stdio;
