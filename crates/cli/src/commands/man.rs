//! `semel man`: a page for every command.

use crate::args::{Cli, ManArgs};
use anyhow::Context as _;
use clap::CommandFactory;
use semel::command::Change;
use semel_core::answer::EffectWord;
use std::fs;
use std::path::PathBuf;

pub fn run(args: &ManArgs) -> anyhow::Result<Change> {
    let directory = &args.directory;
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    render(&root, &mut pages)?;
    let pages = pages.into_iter().map(|(name, page)| (directory.join(name), page));
    let pages: Vec<(PathBuf, Vec<u8>)> = pages.collect();
    let files: Vec<_> = pages.iter().map(|(path, _)| path.display().to_string()).collect();
    let document = serde_json::json!({"schema_version": 1, "items": files, "next": null});
    let text = format!("{} pages in {}", files.len(), directory.display());
    let is_there = |(path, page): &(PathBuf, Vec<u8>)| fs::read(path).is_ok_and(|kept| kept == *page);
    let missing: Vec<_> = pages.iter().filter(|page| !is_there(page)).collect();
    let effect = if missing.is_empty() { EffectWord::Noop } else { EffectWord::Created };
    if args.change.dry_run {
        return Ok(Change::would(effect, document));
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    for (path, page) in missing {
        fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Change::new(effect, document, text))
}

fn render(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        render(part, pages)?;
    }
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    pages.push((man.get_filename(), page));
    Ok(())
}
