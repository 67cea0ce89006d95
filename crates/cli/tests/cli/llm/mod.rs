//! The doors of models of `semel serve`, as far as it takes a process. All other behaviour of these doors is tested in
//! process, in `crates/doors/tests`.

pub mod stage;

use semel_testkit::http::FakeModelApi;
use semel_testkit::wait_until;
use stage::{Stage, ask, request, streamed};

#[test]
fn the_end_of_what_could_not_be_settled_is_never_sent() {
    for api in FakeModelApi::ALL {
        let stage = Stage::failing_at("gate.after_send=error");
        let whole = api.events(1, "answer 1");
        let mut cut = stage.ask(api, &streamed("m"));
        cut.head();
        assert_eq!(cut.broken_chunks(), whole[..whole.len() - 1].concat(), "all but the end");
        let lost = stage.answer(api, &request("other"));
        assert_eq!((lost.status, lost.json()["code"].as_str()), (502, Some("in_doubt")), "{lost:?}");
        assert!(!lost.body.contains("answer 2"), "{lost:?}");
    }
}

#[test]
fn a_generation_whose_process_was_killed_is_generated_by_whoever_waits_for_it() {
    let mut stage = Stage::new();
    let another = stage.another("");
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    first.head();
    first.chunk();
    let waiting = ask(&another, FakeModelApi::Chat, "", &request("waits"));
    stage.served.kill();
    wait_until("its twin asks", || stage.model.asked() == 2);
    stage.model.release();
    let answer = waiting.answer();
    assert_eq!(answer.body, FakeModelApi::Chat.document(2, "answer 2").to_string(), "{answer:?}");
}
