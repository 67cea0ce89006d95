//! The model holds as designed, and notices each single rule that is broken.

use std::collections::BTreeSet;

use semel_testkit::model::{
    Bounds, I1_AT_MOST_ONCE as I1, I2_SUCCESS_IS_TRUE as I2, I3_APPLIED_IS_TRUE as I3,
    I4_EFFECT_IS_KNOWN as I4, I5_DRAINED_IS_FINAL as I5, I6_SUCCESS_IS_DURABLE as I6,
    I7_DENIAL_IS_TRUE as I7, I8_ATTEMPTS_ARE_ORDERED as I8, I9_PRUNED_IS_KNOWN as I9, INVARIANTS, Lifecycle,
    ModelEvidence, ModelState, Record, UpstreamVariant, Variant,
};
use stateright::{Checker, HasDiscoveries, Model};

/// Few, because the test harness already runs searches side by side.
const CHECKER_THREADS: usize = 2;

#[test]
fn the_correct_model_holds_for_an_opaque_upstream() {
    assert_holds(UpstreamVariant::Opaque);
}

#[test]
fn the_correct_model_holds_for_a_probed_upstream() {
    assert_holds(UpstreamVariant::Probed);
}

#[test]
fn the_correct_model_holds_for_a_keyed_upstream() {
    assert_holds(UpstreamVariant::Keyed);
}

/// One test per line: the variant, the upstream that shows its mistake, and the invariants that it breaks.
macro_rules! broken_variants {
    ($($test:ident: $variant:ident, $upstream:ident, [$($invariant:ident),+];)+) => {
        $(
            #[test]
            fn $test() {
                assert_breaks(Variant::$variant, UpstreamVariant::$upstream, &[$($invariant),+]);
            }
        )+

        const TABLE: &[(Variant, &[&str])] = &[$((Variant::$variant, &[$($invariant),+])),+];
    };
}

broken_variants! {
    re_executing_after_a_lease_is_caught: LeaseReexecute, Opaque, [I1, I8];
    releasing_after_a_timeout_is_caught: TimeoutRelease, Opaque, [I1, I4, I7];
    sending_before_the_claim_is_caught: SendBeforeClaim, Opaque, [I1, I4, I5];
    an_unnoticed_failover_is_caught: FailoverLosesClaim, Opaque, [I1, I4];
    pruning_a_fact_is_caught: PruneToAbsent, Opaque, [I1, I6, I9];
    pruning_a_doubt_is_caught: PruneInDoubt, Opaque, [I1, I4, I9];
    a_transparent_resend_is_caught: TransparentResend, Opaque, [I1, I5];
    a_fence_read_outside_the_claim_is_caught: CancelCheckOutsideTransaction, Opaque, [I5];
    replying_before_settling_is_caught: ReplyBeforeSettle, Opaque, [I6];
    believing_a_probe_while_the_sender_lives_is_caught: NaiveProbe, Probed, [I1, I4, I7];
    believing_a_stale_probe_is_caught: StaleProbe, Probed, [I1, I4, I7];
    settling_over_a_probed_record_is_caught: SettleWithoutCompareAndSwap, Probed, [I1, I6];
    settling_over_a_newer_attempt_is_caught: SettleWithoutCompareAndSwap, Keyed, [I4, I6];
    a_downstream_key_per_attempt_is_caught: DownstreamKeyPerAttempt, Keyed, [I1];
    relying_on_a_lapsed_downstream_key_is_caught: DownstreamKeyLifeLapsed, Keyed, [I1];
    a_release_that_ignores_a_prior_attempt_is_caught: ReleaseIgnoresPriorAttempt, Keyed, [I4, I7];
    a_failure_that_ignores_a_prior_attempt_is_caught: FailureIgnoresPriorAttempt, Keyed, [I4, I7];
    a_resolver_that_ignores_a_cancel_is_caught: ResolverIgnoresCancel, Keyed, [I5];
    an_epoch_that_guards_only_absence_is_caught: EpochGuardsAbsenceOnly, Opaque, [I1, I4];
    a_probe_that_outlives_its_epoch_is_caught: ProbeOutlivesEpoch, Probed, [I4];
}

#[test]
fn every_broken_variant_has_a_test() {
    let tested: BTreeSet<String> = TABLE.iter().map(|(variant, _)| format!("{variant:?}")).collect();
    let known: BTreeSet<String> = Variant::BROKEN.iter().map(|variant| format!("{variant:?}")).collect();
    assert_eq!(tested, known);
    let classic = [
        "LeaseReexecute",
        "TimeoutRelease",
        "SendBeforeClaim",
        "FailoverLosesClaim",
        "PruneToAbsent",
        "PruneInDoubt",
        "TransparentResend",
        "CancelCheckOutsideTransaction",
        "ReplyBeforeSettle",
        "NaiveProbe",
        "StaleProbe",
        "SettleWithoutCompareAndSwap",
        "DownstreamKeyPerAttempt",
        "DownstreamKeyLifeLapsed",
        "ReleaseIgnoresPriorAttempt",
        "FailureIgnoresPriorAttempt",
        "ResolverIgnoresCancel",
    ];
    assert_eq!(classic.len(), 17);
    for name in classic {
        assert!(tested.contains(name), "{name} has no test");
    }
}

#[test]
fn every_invariant_is_broken_by_a_variant_or_confronted_with_a_lie() {
    let mut confronted: BTreeSet<&str> =
        TABLE.iter().flat_map(|(_, invariants)| invariants.iter().copied()).collect();
    confronted.extend([I2, I3]);
    let all: BTreeSet<&str> = INVARIANTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(confronted, all);
}

#[test]
fn a_success_reply_without_an_effect_is_a_lie() {
    assert_lie(I2, |state| state.history.success_replied = true);
}

#[test]
fn an_applied_record_without_an_effect_is_a_lie() {
    assert_lie(I3, |state| {
        state.ledger.record = Record::Applied { evidence: ModelEvidence::Reported, reply_kept: true };
    });
}

fn assert_lie(invariant: &'static str, lie: fn(&mut ModelState)) {
    let model = correct(UpstreamVariant::Opaque);
    let mut state = model.init_states()[0];
    let condition = model.property(invariant).condition;
    assert!(condition(&model, &state));
    lie(&mut state);
    assert!(!condition(&model, &state));
}

/// Searches every state within the bounds.
#[allow(clippy::print_stdout, reason = "the size of the search is what a reader of the test log looks for")]
fn assert_holds(upstream: UpstreamVariant) {
    let model = correct(upstream);
    let checker = model.checker().threads(CHECKER_THREADS).spawn_bfs().join();
    println!(
        "{upstream:?} within {:?}: {} unique states, {} steps, depth {}",
        model.bounds,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth()
    );
    assert!(checker.is_done(), "the search was cut short");
    checker.assert_properties();
}

/// Searches until it has a counterexample to each of `invariants`.
#[allow(clippy::print_stdout, reason = "the size of the search is what a reader of the test log looks for")]
fn assert_breaks(variant: Variant, upstream: UpstreamVariant, invariants: &[&'static str]) {
    let bounds = Bounds::every_run(upstream);
    let checker = Lifecycle { upstream, variant, bounds }
        .checker()
        .threads(CHECKER_THREADS)
        .finish_when(HasDiscoveries::AllOf(invariants.iter().copied().collect()))
        .spawn_bfs()
        .join();
    println!("{variant:?}, {upstream:?}: {} unique states", checker.unique_state_count());
    for &invariant in invariants {
        let path = checker.assert_any_discovery(invariant).into_actions();
        assert!(!path.is_empty(), "{variant:?} breaks {invariant} before anything happened");
        println!("  {invariant}: {path:?}");
    }
}

fn correct(upstream: UpstreamVariant) -> Lifecycle {
    let bounds = if is_deep() { Bounds::deep(upstream) } else { Bounds::every_run(upstream) };
    Lifecycle { upstream, variant: Variant::Correct, bounds }
}

#[allow(clippy::disallowed_methods, reason = "a test's own switch, which no configuration of semel knows")]
fn is_deep() -> bool {
    std::env::var("SEMEL_MODEL_DEEP").is_ok_and(|value| value == "1")
}
