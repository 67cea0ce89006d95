//! How the name of a request can be read.
//!
//! A pack speaks of an API from the API's own root, and an upstream may have that root below a path: a gateway at
//! `https://gateway/stripe` has `/stripe/v1/charges` where the pack says `/v1/charges`. The name of the action, and with
//! it the identity, keeps the whole path; only the rules of packs are also held against what is left of it.

use super::ActionFacts;
use super::build::Written;
use super::rule::{Call, Confirm, Origin, Probe};
use super::upstreams::HttpApi;
use crate::json::Json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// All readings of one action.
#[derive(Debug)]
pub struct Readings<'a> {
    whole: &'a str,
    /// What patterns are matched against: the action, and for commands all arguments after the program's name.
    subject: Cow<'a, str>,
    /// Those that leave out most come first: a pattern that lets anything stand before what it knows matches several,
    /// and knows the API's root best without what stands before it.
    below: Vec<Below<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Below<'a> {
    root: Root<'a>,
    action: String,
}

/// Where an API's own paths begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root<'a> {
    service: &'a str,
    /// Without a slash at its end.
    prefix: &'a str,
}

/// The reading that a rule takes an action in.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    pub action: &'a str,
    /// `None`: as it is called.
    pub root: Option<Root<'a>>,
}

impl<'a> Readings<'a> {
    pub fn of(facts: &ActionFacts<'a>, upstreams: &'a BTreeMap<String, HttpApi>) -> Readings<'a> {
        let mut below = Vec::new();
        if let Some((method, place)) =
            facts.action.strip_prefix("http:").and_then(|name| name.split_once(' '))
        {
            below.extend(upstreams.values().flat_map(|api| below_its_url(api, method, place)));
            below.sort_by_key(|below| std::cmp::Reverse(below.root.prefix.len()));
        }
        Readings { whole: facts.action, subject: subject(facts), below }
    }

    pub fn whole(&self) -> Reading<'_> {
        Reading { action: self.whole, root: None }
    }

    /// The reading in which a rule's pattern covers the action.
    pub fn for_rule(&self, written: &Written) -> Option<Reading<'_>> {
        let below = self.below_for(written).iter().find(|below| written.pattern.matches(&below.action));
        let below = below.map(|below| Reading { action: &below.action, root: Some(below.root) });
        below.or_else(|| written.pattern.matches(&self.subject).then(|| self.whole()))
    }

    /// The reading in which a rule's pattern would cover the action under another spelling, where it covers none.
    pub fn nearly_for_rule(&self, written: &Written) -> Option<Reading<'_>> {
        let below = self.below_for(written).iter();
        let below = below.map(|below| Reading { action: &below.action, root: Some(below.root) });
        let near = below.chain([self.whole()]).find(|reading| written.pattern.nearly_matches(reading.action));
        near.filter(|_| self.for_rule(written).is_none())
    }

    /// Whoever writes a rule for an upstream of his own knows where it is.
    fn below_for(&self, written: &Written) -> &[Below<'a>] {
        match written.origin {
            Origin::Pack { .. } => &self.below,
            Origin::File { .. } | Origin::Default => &[],
        }
    }
}

/// An upstream's url may end with the first parts of the API's own paths (`https://gateway/stripe/v1`), so that any
/// number of its segments may be what stands before them.
fn below_its_url<'a>(api: &'a HttpApi, method: &str, place: &str) -> Vec<Below<'a>> {
    let base = api.base();
    let Some(path) = place.strip_prefix(api.service.as_str()) else { return Vec::new() };
    let is_there = path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if base.is_empty() || !is_there {
        return Vec::new();
    }
    let slashes = base.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
    let ends = slashes.chain([base.len()]);
    ends.map(|end| {
        let rest = if path.len() == end { "/" } else { &path[end..] };
        let root = Root { service: &api.service, prefix: &base[..end] };
        Below { root, action: format!("http:{method} {}{rest}", api.service) }
    })
    .collect()
}

fn subject<'a>(facts: &ActionFacts<'a>) -> Cow<'a, str> {
    let argv = facts.arguments.get("argv").and_then(Json::as_array);
    let (true, Some([_, arguments @ ..])) = (facts.action.starts_with("cli:"), argv) else {
        return Cow::Borrowed(facts.action);
    };
    let mut subject = facts.action.to_owned();
    for argument in arguments {
        subject.push(' ');
        subject.push_str(argument.as_str().unwrap_or_default());
    }
    Cow::Owned(subject)
}

/// What a rule asks, and takes back, is where the API is: its addresses are written from the API's own root too.
impl Reading<'_> {
    pub fn probe(&self, probe: &Probe) -> Probe {
        Probe { call: self.call(&probe.call), ..probe.clone() }
    }

    pub fn confirm(&self, confirm: &Confirm) -> Confirm {
        Confirm { call: self.call(&confirm.call), ..confirm.clone() }
    }

    pub fn call(&self, call: &Call) -> Call {
        match (call, self.root) {
            (Call::Http { method, url, body }, Some(Root { service, prefix })) => {
                Call::Http { method: method.clone(), url: url.below(service, prefix), body: body.clone() }
            }
            (call, _) => call.clone(),
        }
    }
}
