//! A host's clock is compared with that of the ledger's server for as long as it uses the ledger.

use crate::house::*;
use semel_core::answer::Code;
use semel_core::policy::Mode;
use semel_gate::upstream::ProbeAnswer;

fn jump(house: &House, seconds: i64) {
    house.clock.jump(seconds * 1_000_000);
}

#[test]
fn a_host_whose_clock_was_set_since_it_opened_the_ledger_claims_nothing() {
    for off in [60, -60] {
        let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
        house.server_clock_is_ahead(0);
        let gate = house.gate();
        house.pass_delivered(&gate, &wish, &script);
        jump(&house, off);
        let other = wish.with_arguments(r#"{"args":{"customer":"bob"}}"#);
        let refused = house.try_pass(&gate, &other, &script).expect_err("its clock is wrong");
        assert!(refused.to_string().contains("this host's clock is 60 s"), "{refused}");
        jump(&house, -off);
        assert!(house.pass(&gate, &other, &script).answer.ok);
        assert_eq!((script.sent(), house.effects().len()), (2, 2));
    }
}

/// Neither of them was set: they went apart.
#[test]
fn a_clock_that_drifts_is_found_out_at_the_next_heartbeat() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    house.server_clock_is_ahead(0);
    let gate = house.gate();
    house.server_clock_is_ahead(8);
    house.wait(seconds(10));
    house.try_pass(&gate, &wish, &script).expect_err("its clock is wrong");
    house.server_clock_is_ahead(4);
    house.wait(seconds(10));
    assert!(house.pass(&gate, &wish, &script).answer.ok);
    assert_eq!((script.sent(), house.effects().len()), (1, 1));
}

/// The sender of the first attempt, on another machine, may still send.
#[test]
fn a_no_counts_for_nothing_while_the_clock_is_off() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.wait = seconds(0);
    house.server_clock_is_ahead(0);
    let paused = Script::answers([unclear()]).probes([ProbeAnswer::No]);
    assert_eq!(code(&house.pass(&house.process(1, Mode::Guard).0, &wish, &paused)), Some(Code::InDoubt));
    house.clock.reboot();
    let gate = house.process(2, Mode::Guard).0;
    let script = Script::succeeds().probes([ProbeAnswer::No]);
    jump(&house, 60);
    for _ in 0..2 {
        assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
        assert_eq!((paused.sent(), script.sent()), (1, 0));
        house.wait(seconds(6));
    }
    jump(&house, -60);
    house.wait(seconds(20));
    assert!(house.pass(&gate, &wish, &script).answer.ok, "all could have been sent that ever was");
    assert_eq!((paused.sent(), script.sent()), (1, 1));
}
