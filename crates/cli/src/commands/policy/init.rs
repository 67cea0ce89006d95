//! `semel policy init`: a policy to start with, for a server or an API.

use crate::args::PolicyInitOf;
use crate::commands::check::{policy, read_openapi, tools};
use crate::context::Context;
use crate::output::{Hinted, counted};
use anyhow::Context as _;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::class::Class;
use semel_core::policy::{Policy, PolicyFile};
use semel_detect::check::openapi;
use semel_detect::check::surface::{self, NamedUpstream};
use serde_json::json;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

pub fn run(context: &Context, of: &PolicyInitOf) -> anyhow::Result<Change> {
    let (output, upstream, operations, change) = match of {
        PolicyInitOf::Mcp { name, output, words, change } => {
            (output, None, tools(context, name, words)?, change)
        }
        PolicyInitOf::Http { name, openapi, output, change } => {
            let document = read_openapi(context, openapi)?;
            let upstream = openapi::address(&document).map(|url| (name.clone(), url));
            (output, upstream, surface::of_openapi(&document, &policy(context)?), change)
        }
    };
    let upstream = upstream.as_ref().map(|(name, url)| NamedUpstream { name, url });
    let text = surface::policy_text(upstream, &operations);
    let path = context.environment.settings.cwd.join(output);
    let written = PolicyFile { path: path.clone(), text: text.clone() };
    if let Err(found) = Policy::load(vec![written]) {
        context.output.warn(found.render(false));
        anyhow::bail!("no policy can be written for it: its own names do not fit in one");
    }
    let rules = operations.iter().filter(|operation| operation.class == Class::Consequential).count();
    let document = json!({"schema_version": 1, "file": path, "rules": rules});
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(Change::noop(document, format!("{} is this policy already.", path.display())));
    }
    if change.dry_run {
        return Ok(Change::new(EffectWord::Created.would(), document, text));
    }
    write_new(&path, &text)?;
    let hint = format!(
        "{} with {}, for {}.\nhint: complete the lines that begin with #, then semel policy lint",
        path.display(),
        counted(rules, "rule", "rules"),
        counted(operations.len(), "operation", "operations"),
    );
    Ok(Change { hint: Some(hint), ..Change::created(document, text) })
}

/// Never replaces a file: a policy that is there may be what keeps things from happening twice.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let mut file = std::fs::File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Hinted::error(
            format!("{shown} is there already, and nothing was written"),
            "--output names another file, whose rules can be copied over",
        ),
        _ => anyhow::Error::from(error).context(format!("cannot write {shown}")),
    })?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {shown}"))
}
