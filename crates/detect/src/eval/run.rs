//! Runs scenarios side by side against one subject.

use super::agent;
use super::port::{CommandPort, HttpPort, McpPort, Port};
use super::scenario::Scenario;
use super::score::{self, ScenarioResult};
use super::world::{World, wait_for_late_effects};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A guard, or none, and the way to the world behind it.
#[derive(Debug, Clone)]
pub enum EvalSubject {
    /// `guard` before each command; `{step}` in it is the agent's name of the step.
    Command { guard: Vec<String>, tool: Vec<String> },
    /// `guard` before the server's command.
    Mcp { guard: Vec<String>, server: Vec<String> },
    /// Requests go to this address; the world is at `world_base` below it.
    Http { address: SocketAddr, host: String, base: String },
}

/// Most of the time an agent waits, so more run at once than there are processors.
const AT_ONCE: usize = 8;

/// Runs the scenarios, each in a world below `directory`. `environment` gives each scenario what its guard keeps apart.
pub fn run(
    scenarios: &[Scenario],
    subject: &EvalSubject,
    directory: &Path,
    environment: &(dyn Fn(usize) -> Vec<(String, String)> + Sync),
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
                    let result = try_one(scenario, number, subject, directory, environment);
                    let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    results[number] = Some(result);
                    progress(results.iter().flatten().count());
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.into_iter().flatten().collect()
}

fn try_one(
    scenario: &Scenario,
    number: usize,
    subject: &EvalSubject,
    directory: &Path,
    environment: &(dyn Fn(usize) -> Vec<(String, String)> + Sync),
) -> io::Result<ScenarioResult> {
    let name = format!("w{number}");
    let place = directory.join(&name);
    let world = World::create(&place, scenario.fault)?;
    let environment = environment(number);
    let port = || -> io::Result<Box<dyn Port>> {
        let with_place = |words: &[String]| -> Vec<String> {
            words.iter().map(|word| word.replace("{world}", &place.to_string_lossy())).collect()
        };
        Ok(match subject {
            EvalSubject::Command { guard, tool } => Box::new(CommandPort {
                guard: guard.clone(),
                tool: with_place(tool),
                environment: environment.clone(),
            }),
            EvalSubject::Mcp { guard, server } => {
                let words: Vec<String> = guard.iter().cloned().chain(with_place(server)).collect();
                Box::new(McpPort::start(&words, &environment)?)
            }
            EvalSubject::Http { address, host, base } => {
                Box::new(HttpPort { address: *address, host: host.clone(), base: format!("{base}/{name}") })
            }
        })
    };
    let (first, second) = (port()?, port()?);
    let heard = agent::work(scenario, first.as_ref(), second.as_ref());
    // A late effect may still come.
    wait_for_late_effects();
    Ok(score::score(scenario, &heard, &world.log()?))
}
