//! `semel policy`: write it, lint it, test it, explain it, describe its form.

mod explain;
mod init;
mod lint;
mod presets;
mod test;

use crate::args::{PolicyArgs, PolicyCommand};
use crate::context::Context;
use semel_core::policy::schema;
use std::process::ExitCode;

pub fn run(context: &Context, args: &PolicyArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        PolicyCommand::Lint { files } => lint::run(context, files),
        PolicyCommand::Test(args) => test::run(context, args),
        PolicyCommand::Init(args) => init::run(context, &args.of).map(|change| context.answer(change)),
        PolicyCommand::Explain(args) => explain::run(context, args),
        PolicyCommand::Presets { name } => presets::run(context, name.as_deref()),
        PolicyCommand::Schema => {
            context.output.document(&schema::schema());
            Ok(ExitCode::SUCCESS)
        }
    }
}
