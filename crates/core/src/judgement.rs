//! The defaults: how a call is judged where no rule says anything. `spec/judgement.md` is the normative page, and each
//! table there is a table here.
//!
//! | module | judges |
//! |---|---|
//! | `error_text` | what an error says about whether its work was done |
//! | `evidence` | how far a bare success is believed |
//! | `failure` | what a failed attempt means |
//! | `recognise` | the class of an action, by its name or method |
//! | `arguments` | the arguments of a call, by their names |
//! | `outline` | what a call looks like without its wording |
//! | `lookalike` | whether a call waits for, or is held for, another of its outline |
//! | `superseded` | whether a later effect removed what an earlier one made |

pub mod arguments;
pub mod error_text;
pub mod evidence;
pub mod failure;
pub mod lookalike;
pub mod outline;
pub mod recognise;
pub mod superseded;
