//! LiteLLM as a proxy before the same model that does nothing.

use super::installed;
use crate::measure;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::peers;
use xtask::project::Result;

use crate::wire::{BenchConnection, request};

const PACKAGES: [&str; 1] = ["litellm[proxy]==1.106.2"];

pub const VERSION: &str = "1.106.2";

/// It refuses to start with a weak one.
const KEY: &str = "sk-5f1d0c7ab2e94c36a8d1b07e4f9c2d63";

/// Importing all that it needs takes some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct LiteLlm {
    process: Child,
    pub address: SocketAddr,
}

impl LiteLlm {
    /// With one worker, as it starts without being told otherwise; telemetry, logs and retries are off.
    pub fn before(model: SocketAddr, directory: &Path, runtime: &Runtime) -> Result<LiteLlm> {
        let home =
            installed("litellm", &PACKAGES, |home| peers::install_with_pip(&PACKAGES, &home.join("python")))?;
        let file = directory.join("litellm.yaml");
        fs::write(&file, configuration(model))?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new(home.join("python/bin/litellm"));
        command.arg("--config").arg(&file);
        command.args(["--host", "127.0.0.1", "--port", &address.port().to_string(), "--num_workers", "1"]);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", directory);
        for (name, value) in [
            ("LITELLM_MODE", "PRODUCTION"),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
            ("LITELLM_LOG", "ERROR"),
            ("LITELLM_TELEMETRY", "False"),
        ] {
            command.env(name, value);
        }
        let log = directory.join("litellm.log");
        let process =
            command.stdin(Stdio::null()).stdout(File::create(&log)?).stderr(File::create(&log)?).spawn()?;
        let mut litellm = LiteLlm { process, address };
        litellm.wait_until_ready(runtime, &log)?;
        Ok(litellm)
    }

    fn wait_until_ready(&mut self, runtime: &Runtime, log: &Path) -> Result<()> {
        let started = measure::now();
        let address = self.address;
        let ready = || {
            runtime
                .block_on(async { BenchConnection::to(address).await?.ask(&self::prompt(0)).await })
                .is_ok()
        };
        while !ready() {
            if self.process.try_wait()?.is_some() || started.elapsed() > PATIENCE {
                let said = fs::read_to_string(log).unwrap_or_default();
                return Err(format!("LiteLLM does not start: {}", said.trim()).into());
            }
            measure::pause(Duration::from_millis(300));
        }
        Ok(())
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn configuration(model: SocketAddr) -> String {
    format!(
        "model_list:
  - model_name: mock
    litellm_params: {{model: openai/mock, api_base: \"http://{model}/v1\", api_key: sk-none}}
general_settings: {{master_key: {KEY}, disable_spend_logs: true}}
litellm_settings: {{telemetry: false, num_retries: 0}}
"
    )
}

/// A prompt that was never sent before.
pub fn prompt(n: u64) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"mock","messages":[{{"role":"user","content":"prompt {n:012} of this bench"}}]}}"#
    );
    let headers = format!("Content-Type: application/json\r\nAuthorization: Bearer {KEY}\r\n");
    request("POST", "/v1/chat/completions", &headers, &body)
}
