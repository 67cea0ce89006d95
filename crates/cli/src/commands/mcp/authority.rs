//! What tells two servers of one name apart: the program behind each, however it was started.

use std::ffi::OsString;
use std::path::Path;

/// The command as it would be known elsewhere: the program without its directory, scripts and other files by their whole
/// path, packages without their version. An upgrade is the same server; another project's `server.py` is not.
pub fn of_command(command: &[OsString], cwd: &Path) -> String {
    let mut words = command.iter().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let program = match program.contains('/') && !on_every_machine(&program) {
        true => whole(&program, cwd),
        false => program.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    let words = words.map(|word| match cwd.join(&word).exists() && !word.is_empty() {
        true => whole(&word, cwd),
        false => without_version(&word).to_owned(),
    });
    std::iter::once(program).chain(words).collect::<Vec<_>>().join("\u{1f}")
}

/// `/usr/bin/python3` and `python3` are one program; `./server` is not another project's.
fn on_every_machine(program: &str) -> bool {
    ["/usr/", "/bin/", "/opt/", "/nix/"].iter().any(|root| program.starts_with(root))
        || program.contains("/bin/")
}

fn whole(path: &str, cwd: &Path) -> String {
    let path = cwd.join(path);
    path.canonicalize().unwrap_or(path).to_string_lossy().into_owned()
}

/// `@scope/package@1.2.3` and `package==2.0` without what an upgrade changes. Addresses keep all they have.
fn without_version(word: &str) -> &str {
    if word.contains("://") {
        return word;
    }
    let digit = |at: usize| {
        word[at..].starts_with(|c: char| c.is_ascii_digit() || c == 'v') || word[at..].starts_with("latest")
    };
    let marks = word.char_indices().skip(1).filter(|(_, c)| matches!(c, '@' | '='));
    let version = marks.filter(|(at, _)| {
        digit(word[*at..].find(|c| c != '@' && c != '=').map_or(word.len(), |skip| at + skip))
    });
    version.map(|(at, _)| &word[..at]).next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str, cwd: &Path) -> String {
        let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        of_command(&words, cwd)
    }

    #[test]
    fn the_same_script_name_in_two_projects_is_two_servers() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for project in [&one, &other] {
            std::fs::write(project.path().join("server.py"), "").unwrap();
        }
        assert_ne!(of("python3 server.py", one.path()), of("python3 server.py", other.path()));
        let whole = one.path().join("server.py");
        let elsewhere = format!("/usr/bin/python3 {}", whole.display());
        assert_eq!(of("python3 server.py", one.path()), of(&elsewhere, other.path()));
    }

    #[test]
    fn an_upgraded_package_is_the_same_server() {
        let cwd = Path::new("/");
        assert_eq!(of("npx -y @stripe/mcp@1.2.3", cwd), of("npx -y @stripe/mcp@2.0.0", cwd));
        assert_eq!(of("npx -y @stripe/mcp", cwd), of("npx -y @stripe/mcp@latest", cwd));
        assert_eq!(of("uvx mcp-server-git==1.0", cwd), of("uvx mcp-server-git", cwd));
        assert_ne!(of("npx pg postgresql://u@db1/x", cwd), of("npx pg postgresql://u@db2/x", cwd));
        assert_ne!(of("npx srv --region=eu", cwd), of("npx srv --region=us", cwd));
    }
}
