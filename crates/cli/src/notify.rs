//! From `[notify]` to whoever is told.

use crate::context::Context;
use crate::output::Output;
use anyhow::Context as _;
use semel_core::answer::{Answer, EffectWord};
use semel_core::policy::Policy;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::notify::{LAST_WORDS_MAX, Listener, NotifyCommand, WebhookSender};
use semel_doors::services::Services;
use semel_gate::Gate;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Everybody who is told by this policy.
pub fn listeners(context: &Context, policy: &Policy) -> anyhow::Result<Vec<Listener>> {
    let Some(notify) = &policy.notify else { return Ok(Vec::new()) };
    let command = notify.command.as_ref().map(|command| {
        Listener::Command(NotifyCommand {
            argv: command.argv.clone(),
            directory: context.environment.settings.cwd.join(&command.directory),
            search: context.environment.search.clone(),
        })
    });
    let url = notify.url.as_ref().map(|url| {
        let target = Target::parse(&url.url).context("url")?.with_private(url.private);
        let variable = url.secret_env.as_deref();
        let secret = variable.map(|name| context.environment.variable(name)).transpose();
        let secret = secret.context("secret_env")?;
        let webhook = WebhookSender::new(Client::to(target)?, secret.as_deref());
        anyhow::Ok(Listener::Url(webhook.context("secret_env")?))
    });
    let url = url.transpose().context("[notify]")?;
    Ok(command.into_iter().chain(url).collect())
}

/// The tasks that tell beside the calls of a program that serves many.
#[derive(Debug)]
pub struct Telling {
    tasks: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl Telling {
    pub fn start(
        listeners: Vec<Listener>,
        runtime: &Runtime,
        services: &Arc<Services>,
        output: Output,
    ) -> Telling {
        let (stop, stopped) = watch::channel(false);
        let tasks = listeners.into_iter().map(|listener| {
            let (services, stopped) = (Arc::clone(services), stopped.clone());
            runtime.spawn(async move {
                // Behind a server it is the server that tells.
                let Ok(gate) = &services.gate else { return };
                listener.keep(gate, |said| output.warn(said), stopped).await;
            })
        });
        Telling { tasks: tasks.collect(), stop }
    }

    /// What has happened until now is told too, within a short time; the rest is for the next process.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        let told = async {
            for task in self.tasks {
                let _panicked = task.await;
            }
        };
        let _left_to_others = tokio::time::timeout(LAST_WORDS_MAX, told).await;
    }
}

/// Before a command ends whose answer is a doubt. Nothing about it can change the answer, which was given already.
pub fn before_the_end(context: &Context, gate: &Gate, policy: &Policy, answer: &Answer) {
    if policy.notify.is_none() || answer.effect != EffectWord::Unknown {
        return;
    }
    let warn = |said: String| context.output.warn(said);
    let told = crate::server_runtime::runtime().map_err(anyhow::Error::from).and_then(|runtime| {
        let _in_runtime = runtime.enter();
        for listener in listeners(context, policy)? {
            runtime.block_on(listener.tell_now(gate, answer.effect_id, warn))?;
        }
        Ok(())
    });
    if let Err(error) = told {
        warn(format!("semel: nobody is told of this: {error:#}"));
    }
}
