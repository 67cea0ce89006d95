//! The tool that the agents of the demo use: one request to the bank, one exit code.

use super::protocol::{self, Reply, Request, Unanswered};
use crate::args::{DemoPay, PayRequest};
use crate::output::Output;
use std::process::ExitCode;

/// A probe's no; of a charge, a lost answer.
const EXIT_NO: u8 = 1;
/// Nothing that a probe could be believed for.
const EXIT_UNCLEAR: u8 = 2;

pub fn pay(output: Output, args: &DemoPay) -> ExitCode {
    let request = request(&args.request);
    let charging = matches!(request, Request::Charge { .. });
    let (said, code) = match protocol::ask(args.bank, &request) {
        Ok(Reply::Charged { charge } | Reply::Found { charge: Some(charge) }) => {
            return success(output.line(&charge));
        }
        Ok(Reply::Count { count }) => return success(output.data(count)),
        Ok(Reply::Found { charge: None }) => ("there is no such charge".to_owned(), EXIT_NO),
        Ok(Reply::Refused { why }) => (format!("refused: {why}"), EXIT_UNCLEAR),
        Ok(Reply::AnswerWillBeLost) => ("the bank answered another question".to_owned(), EXIT_UNCLEAR),
        // A question whose answer was lost says nothing, least of all no.
        Err(lost @ Unanswered::Lost(_)) => (lost.to_string(), if charging { EXIT_NO } else { EXIT_UNCLEAR }),
        Err(other) => (other.to_string(), EXIT_UNCLEAR),
    };
    output.warn(format_args!("pay: {said}"));
    ExitCode::from(code)
}

fn success(read: bool) -> ExitCode {
    if read { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNCLEAR) }
}

fn request(asked: &PayRequest) -> Request {
    match asked.clone() {
        PayRequest::Charge { order, amount, memo } => Request::Charge { order, amount, memo },
        PayRequest::Find { order } => Request::Find { order },
        PayRequest::Count { order } => Request::Count { order },
    }
}
