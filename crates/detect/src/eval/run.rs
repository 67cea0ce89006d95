//! Runs scenarios side by side against one subject.

use super::agent;
use super::command_port::CommandPort;
use super::http_port::HttpPort;
use super::model::ChatModel;
use super::port::Port;
use super::scenario::Scenario;
use super::score::{self, ScenarioResult};
use super::world::{EffectTime, World, wait_for_late_effects};
use crate::mcp_server_process::McpServerProcess;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A guard, or none, and the way to the world behind it.
#[derive(Debug, Clone)]
pub enum EvalSubject {
    /// `guard` before each command; `{step}` in it is the agent's name of the step, `{state}` a directory of its own.
    Command { guard: Vec<String>, tool: Vec<String> },
    /// `guard` before the server's command.
    Mcp { guard: Vec<String>, server: Vec<String> },
    /// Requests go to this address; the worlds are below `base`. `{step}` in the value of a header as above.
    Http { address: SocketAddr, host: String, base: String, header: Option<(String, String)> },
}

/// A subject under trial.
#[derive(Debug)]
pub struct EvalTrial<'a> {
    pub subject: &'a EvalSubject,
    /// Each scenario has its world and the files of its guard below it.
    pub directory: &'a Path,
    /// The agent of scenarios that want one.
    pub model: Option<&'a dyn ChatModel>,
}

/// Most of the time an agent waits, so more run at once than there are processors.
const AT_ONCE: usize = 8;

/// Runs the scenarios and says how many are through.
pub fn run(
    scenarios: &[Scenario],
    trial: &EvalTrial<'_>,
    progress: &(dyn Fn(usize) + Sync),
) -> io::Result<Vec<ScenarioResult>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<io::Result<ScenarioResult>>>> =
        Mutex::new(std::iter::repeat_with(|| None).take(scenarios.len()).collect());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(scenarios.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(scenario) = scenarios.get(number) else { break };
                    let result = try_one(scenario, number, trial);
                    if result.is_err() {
                        // A guard that cannot be tried needs no second trial.
                        next.store(scenarios.len(), Ordering::Relaxed);
                    }
                    let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    results[number] = Some(result);
                    progress(results.iter().flatten().count());
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let results: Vec<ScenarioResult> = results.into_iter().flatten().collect::<io::Result<_>>()?;
    if !results.iter().any(|result| result.reached_the_world) {
        return Err(io::Error::other("no call reached the world: is it running, and does it pass calls on?"));
    }
    Ok(results)
}

fn try_one(scenario: &Scenario, number: usize, trial: &EvalTrial<'_>) -> io::Result<ScenarioResult> {
    let name = format!("w{number}");
    let place = trial.directory.join(&name);
    let world = World::create(&place, &scenario.plan)?;
    let state = trial.directory.join(format!("state-{number}"));
    std::fs::create_dir_all(&state)?;
    let place_in = |words: &[String]| -> Vec<String> {
        let (world, state) = (place.to_string_lossy(), state.to_string_lossy());
        words.iter().map(|word| word.replace("{world}", &world).replace("{state}", &state)).collect()
    };
    let environment = vec![
        ("SEMEL_STATE_DIR".to_owned(), state.to_string_lossy().into_owned()),
        ("SEMEL_POLICY".to_owned(), String::new()),
    ];
    let open = || -> io::Result<Box<dyn Port>> {
        Ok(match trial.subject {
            EvalSubject::Command { guard, tool } => Box::new(CommandPort {
                guard: place_in(guard),
                tool: place_in(tool),
                environment: environment.clone(),
                directory: state.clone(),
            }),
            EvalSubject::Mcp { guard, server } => {
                let words = place_in(&[&guard[..], &server[..]].concat());
                Box::new(McpServerProcess::start(&words, &environment, Some(&state))?)
            }
            EvalSubject::Http { address, host, base, header } => Box::new(HttpPort {
                address: *address,
                host: host.clone(),
                base: format!("{base}/{name}"),
                // One guard serves all scenarios, whose steps have the same names.
                header: header
                    .clone()
                    .map(|(header, value)| (header, value.replace("{step}", &format!("{name}-{{step}}")))),
            }),
        })
    };
    let heard = agent::work(scenario, &world, &open, trial.model)?;
    if scenario.plan.effect == EffectTime::Late {
        wait_for_late_effects();
    }
    Ok(score::score(scenario, &heard, &world.log()?))
}
