//! Which class a request has, and that every rule of a pack is needed for one.

use super::{Line, api, lines, sections};
use semel_core::class::{Class, Tier};
use semel_core::policy::pack::PACKS;
use semel_core::policy::rule::RuleOrigin;
use std::collections::BTreeSet;

#[test]
fn every_request_has_the_class_that_is_written_beside_it() {
    let mut wrong = Vec::new();
    for Line { preset, class, written, request } in lines() {
        let rule = api(preset).rule(&request);
        if rule.class.to_string() != class || rule.class_because.contains("could not be evaluated") {
            wrong.push(format!(
                "[{preset}] {written}\n  {}: {} ({})",
                rule.origin, rule.class, rule.class_because
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The lines at which the rules of a pack for HTTP begin.
fn rules_of(pack: &str) -> BTreeSet<usize> {
    let text = PACKS.iter().find(|known| known.name == pack).expect(pack).text;
    let lines: Vec<&str> = text.lines().collect();
    (1..=lines.len())
        .filter(|at| lines[at - 1] == "[[rule]]" && lines[*at].starts_with("match = \"http:"))
        .collect()
}

#[test]
fn every_rule_for_http_is_the_rule_of_some_request() {
    let mut reached: BTreeSet<(String, usize)> = BTreeSet::new();
    for Line { preset, request, .. } in lines() {
        if let RuleOrigin::Pack { name, line } = api(preset).rule(&request).origin {
            assert_eq!(name, preset, "{}", request.action);
            reached.insert((name, line));
        }
    }
    let all = PACKS
        .iter()
        .flat_map(|pack| rules_of(pack.name).into_iter().map(|line| (pack.name.to_owned(), line)));
    let idle: Vec<_> = all.filter(|rule| !reached.contains(rule)).collect();
    assert!(idle.is_empty(), "no request gets these rules: {idle:?}");
    assert!(reached.len() > 120, "{}", reached.len());
}

#[test]
fn every_preset_has_requests() {
    let with: BTreeSet<&str> = sections().map(|(preset, _)| preset).collect();
    let presets = PACKS.iter().filter(|pack| pack.preset().is_some()).map(|pack| pack.name);
    assert_eq!(presets.filter(|name| !with.contains(name)).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn what_makes_or_sends_something_says_so_in_one_word() {
    for Line { preset, written, request, .. } in lines() {
        let rule = api(preset).rule(&request);
        let silent = rule.effect.is_none() && rule.class == Class::Consequential;
        assert!(!silent, "[{preset}] {written}");
    }
}

#[test]
fn a_repeat_of_what_sets_a_state_goes_to_the_api() {
    for Line { preset, written, request, .. } in lines() {
        let rule = api(preset).rule(&request);
        let promised = matches!(rule.tier(), Tier::Convergent | Tier::Keyed);
        assert!(rule.class != Class::Convergent || promised, "[{preset}] {written}");
    }
}
