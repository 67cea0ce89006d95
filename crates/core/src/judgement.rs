//! The defaults: how a call is judged where no rule says anything. `spec/judgement.md` is the normative page, and each
//! table there is a table here.
//!
//! | module | judges |
//! |---|---|
//! | `evidence` | how far a bare success is believed |
//! | `recognise` | the class of an action, by its name or method |

pub mod evidence;
pub mod recognise;
