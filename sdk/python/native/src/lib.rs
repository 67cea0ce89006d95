//! `semel._native`: the ledger in the process of Python. It answers what the SDK asks for each call as the API would; the
//! Python beside it knows functions, replies and frameworks.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use semel::Semel;
use semel::settings::Settings;
use std::path::PathBuf;
use std::process;

/// An open ledger. It must not be used in a process that was forked from the one that opened it, and is not closed there
/// either: what SQLite would close belongs to the parent.
#[pyclass(frozen)]
struct Ledger {
    semel: Option<Semel>,
    /// Where it keeps its files on this host.
    #[pyo3(get)]
    directory: PathBuf,
    process: u32,
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if self.process != process::id() {
            std::mem::forget(self.semel.take());
        }
    }
}

#[pymethods]
impl Ledger {
    /// Opens the ledger and the policy that the settings name, else those of the environment.
    #[new]
    #[pyo3(signature = (ledger=None, policy=None))]
    fn open(py: Python<'_>, ledger: Option<String>, policy: Option<PathBuf>) -> PyResult<Ledger> {
        let opened = py.detach(|| {
            let found = Settings::read()?;
            let ledger = ledger.or_else(|| found.ledger.clone());
            let policy = policy.or_else(|| found.policy.clone());
            Semel::of(&Settings { ledger, policy, ..found })
        });
        let ledger = |semel: Semel| Ledger {
            directory: semel.directory().to_owned(),
            semel: Some(semel),
            process: process::id(),
        };
        opened.map(ledger).map_err(|error| {
            let code = match &error {
                semel::Error::Policy(_) => "policy_invalid",
                _ => "ledger_unavailable",
            };
            PyRuntimeError::new_err((code, error.to_string(), error.hint()))
        })
    }

    /// A POST to the API: status and body. Waits without holding the interpreter.
    fn ask(&self, py: Python<'_>, path: &str, body: &[u8]) -> PyResult<(u16, String)> {
        let mut interrupted = None;
        let reply = py.detach(|| {
            self.semel().ask(path, body, || {
                interrupted = Python::attach(|py| py.check_signals()).err();
                interrupted.is_some()
            })
        });
        reply.ok_or_else(|| interrupted.expect("only an interruption ends it without a reply"))
    }

    /// Before the process ends, or another ledger is opened: waits a moment for what is still to be written.
    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.semel().flush());
    }

    /// The same, answered on another thread: `then(status, body)` returns False if nobody waits for it any more.
    fn ask_then(&self, path: String, body: Vec<u8>, then: Py<PyAny>) {
        self.semel().ask_then(path, body, move |(status, body)| {
            Python::attach(|py| {
                let taken = then.call1(py, (*status, body)).and_then(|taken| taken.is_truthy(py));
                taken.unwrap_or(false)
            })
        });
    }
}

impl Ledger {
    fn semel(&self) -> &Semel {
        self.semel.as_ref().expect("it is there until this is dropped")
    }
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Ledger>()
}
