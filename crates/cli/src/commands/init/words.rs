//! The words that say which server an entry starts.

use super::entry::{Entry, Local, Remote};
use super::wrapped::{Behind, Guarded};

/// Programs that read what they start out of one argument.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "cmd", "powershell", "pwsh"];

/// All of them, also those within the line that a shell is given. They tell what fits a server; that nothing else is
/// started they do not tell.
pub fn words(entry: &Entry) -> Vec<String> {
    match entry {
        Entry::Local(Local { command, args, .. })
        | Entry::Guarded(Guarded { behind: Some(Behind::Command { command, args, .. }), .. }) => {
            within_lines(command, args)
        }
        Entry::Remote(Remote { url, .. })
        | Entry::Guarded(Guarded { behind: Some(Behind::Url { url, .. }), .. }) => vec![url.clone()],
        Entry::Guarded(_) | Entry::Odd(_) => Vec::new(),
    }
}

fn within_lines(command: &str, args: &[String]) -> Vec<String> {
    let (mut found, mut shell, mut line) = (Vec::new(), false, false);
    for word in std::iter::once(command).chain(args.iter().map(String::as_str)) {
        if line {
            found.extend(of_line(word));
        } else {
            found.push(word.to_owned());
        }
        line |= shell && takes_line(word);
        shell |= is_shell(word);
    }
    found
}

fn is_shell(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    SHELLS.contains(&name.trim_end_matches(".exe"))
}

/// `-c`, alone or behind other letters (`-lc`), and what it is called on Windows.
fn takes_line(flag: &str) -> bool {
    let letters = flag.strip_prefix('-').filter(|letters| letters.bytes().all(|b| b.is_ascii_alphabetic()));
    letters.is_some_and(|letters| letters.ends_with('c'))
        || ["/c", "/k", "-command"].iter().any(|known| flag.eq_ignore_ascii_case(known))
}

/// A line as a shell would split it, as far as words matter: what stands between two commands parts them.
fn of_line(line: &str) -> Vec<String> {
    let between = |c: char| matches!(c, ';' | '&' | '|' | '(' | ')' | '\n');
    let plain = || line.split(|c: char| c.is_whitespace() || between(c)).map(str::to_owned).collect();
    let words: Vec<String> = shlex::split(line).unwrap_or_else(plain);
    let parted = words.iter().flat_map(|word| word.split(between));
    parted.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_shell_is_read_and_nothing_else_is_split() {
        for (args, expected) in [
            (vec!["bash", "-c", "npx -y '@stripe/mcp' --x=1"], "npx"),
            (vec!["/bin/sh", "-lc", "cd /srv; exec npx -y @stripe/mcp; true"], "exec"),
            (vec!["cmd.exe", "/C", "npx -y @stripe/mcp"], "npx"),
            (vec!["env", "A=b", "zsh", "-c", "npx -y @stripe/mcp && don't"], "npx"),
        ] {
            let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            let words = within_lines(&args[0], &args[1..]);
            for word in [expected, "@stripe/mcp"] {
                assert!(words.iter().any(|found| found == word), "{args:?}: {words:?}");
            }
        }
        let args = ["-c".to_owned(), "npx @stripe/mcp".to_owned()];
        assert_eq!(within_lines("server", &args), ["server", "-c", "npx @stripe/mcp"]);
    }
}
