//! What tells two servers of one name apart: the program behind each, however it was started.

use super::directory;
use super::name::{STARTER_WORDS, STARTERS};
use std::ffi::OsString;
use std::path::Path;

/// Programs that fetch a package and run it.
const PACKAGE_RUNNERS: [&str; 10] =
    ["npx", "bunx", "pnpx", "uvx", "uv", "pipx", "npm", "pnpm", "yarn", "bun"];

/// The command as it would be known elsewhere: the program without its directory, scripts and other files by their
/// whole path, packages without their version, and the directory where the words mean nothing without it. An upgrade is
/// the same server; another project's `server.py` or `npm start` is not, nor is one with another argument.
pub fn of_command(command: &[OsString], cwd: &Path) -> String {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let directory = directory::that_counts(&words.iter().map(String::as_str).collect::<Vec<_>>(), cwd);
    let (program, words) = words.split_first().map_or(("", &[][..]), |(program, words)| (program, words));
    let program = match program.contains('/') && !on_every_machine(program) {
        true => whole(program, cwd),
        false => last_of(program).to_owned(),
    };
    let package = package(&program, words);
    let words =
        words.iter().enumerate().map(|(at, word)| match cwd.join(word).exists() && !word.is_empty() {
            true => whole(word, cwd),
            false if package == Some(at) => without_version(word).to_owned(),
            false => word.clone(),
        });
    let known: Vec<String> = std::iter::once(program.clone()).chain(words).collect();
    let place = directory.map(|directory| whole(&directory.to_string_lossy(), cwd));
    match place.filter(|place| !known.contains(place)) {
        Some(place) => format!("{}\u{1e}{place}", known.join("\u{1f}")),
        None => known.join("\u{1f}"),
    }
}

/// Directories of managers that put the same tool on every machine, or into every project.
const MANAGED: [&str; 17] = [
    ".local",
    ".cargo",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".volta",
    ".asdf",
    ".fnm",
    ".bun",
    ".deno",
    ".venv",
    ".bin",
    ".npm-global",
    ".nix-profile",
    ".pixi",
    ".rye",
    ".dotnet",
];

/// `/usr/bin/python3` and `python3` are one program, and so is what a manager of tools put somewhere; `./server` and
/// `./bin/server` are not another project's.
fn on_every_machine(program: &str) -> bool {
    let mut parts = program.split('/');
    ["/usr/", "/bin/", "/opt/", "/nix/"].iter().any(|root| program.starts_with(root))
        || parts.clone().any(|part| MANAGED.contains(&part))
        || parts.any(|part| part == "bin") && STARTERS.contains(&last_of(program))
}

fn last_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// The word that names a package, where the program is one that fetches packages and runs them.
fn package(program: &str, words: &[String]) -> Option<usize> {
    if !PACKAGE_RUNNERS.contains(&program) {
        return None;
    }
    let named = words.iter().position(|word| matches!(word.as_str(), "--from" | "--package" | "-p"));
    named.map(|at| at + 1).or_else(|| {
        words.iter().position(|word| !word.starts_with('-') && !STARTER_WORDS.contains(&word.as_str()))
    })
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
    let (at, mark) = match (word.rfind("=="), word.rfind('@')) {
        (Some(at), _) => (at, 2),
        (None, Some(at)) if at > 0 => (at, 1),
        _ => return word,
    };
    let version = word[at + mark..].trim_start_matches('v');
    let is_one = version.starts_with(|c: char| c.is_ascii_digit()) || version == "latest";
    if is_one { &word[..at] } else { word }
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
        assert_eq!(of("uvx --from mcp-git==1.0 serve", cwd), of("uvx --from mcp-git==2.0 serve", cwd));
    }

    #[test]
    fn another_argument_is_another_server() {
        let cwd = Path::new("/");
        for (one, other) in [
            ("npx srv --region=eu", "npx srv --region=us"),
            ("npx -y srv --account=1001", "npx -y srv --account=1002"),
            ("npx srv@1 tenant@1", "npx srv@1 tenant@2"),
            ("python3 -m srv --vault=vip", "python3 -m srv --vault=visitors"),
            ("srv user@1", "srv user@2"),
        ] {
            assert_ne!(of(one, cwd), of(other, cwd));
        }
    }

    #[test]
    fn a_program_of_a_project_is_its_own_wherever_it_lies() {
        let (one, other) = (Path::new("/one"), Path::new("/other"));
        for own in ["./server", "./bin/server", "bin/server", ".own/bin/server"] {
            assert_ne!(of(own, one), of(own, other), "{own}");
        }
        for everywhere in [
            "/home/ann/.local/bin/srv",
            "/home/ann/.nvm/versions/node/v20/bin/srv",
            "/one/node_modules/.bin/srv",
            "/usr/local/bin/srv",
        ] {
            assert_eq!(of(everywhere, one), of("srv", other), "{everywhere}");
        }
        assert_eq!(of("/one/venv/bin/python3 -m a", one), of("python3 -m a", other));
    }

    /// Each with what makes a directory the project of both.
    const OF_A_PROJECT: [(&str, &str); 46] = [
        ("python3 -m billing", "billing.py"),
        ("python3.12 -um billing.server --port 1", "billing/server.py"),
        ("/usr/bin/python3 -mbilling", "src/billing.py"),
        ("python3 -c import_billing", ""),
        ("node dist/index", "dist/index.js"),
        ("node -e require('./x')", ""),
        ("node --run start", "package.json"),
        ("node .", "package.json"),
        ("npm start", "package.json"),
        ("npm run serve", "package.json"),
        ("npm test", "package.json"),
        ("pnpm exec billing", "package.json"),
        ("pnpm mcp", "package.json"),
        ("yarn mcp", "package.json"),
        ("bun run mcp", "package.json"),
        ("deno task mcp", "deno.json"),
        ("npx .", "package.json"),
        ("npx ./pkg", "pkg/package.json"),
        ("uvx --from . billing", "pyproject.toml"),
        ("uvx --from=. billing", "pyproject.toml"),
        ("uv run billing", "pyproject.toml"),
        ("uv run python -m billing", "pyproject.toml"),
        ("poetry run billing", "pyproject.toml"),
        ("pipenv run billing", "Pipfile"),
        ("hatch run billing", "pyproject.toml"),
        ("pdm run billing", "pyproject.toml"),
        ("make mcp", "Makefile"),
        ("just mcp", "justfile"),
        ("task mcp", "Taskfile.yml"),
        ("cargo run", "Cargo.toml"),
        ("go run .", "go.mod"),
        ("go run example.com/billing", "go.mod"),
        ("docker compose run billing", "compose.yaml"),
        ("docker run -v .:/app node node /app/x.js", ""),
        ("env TOKEN=1 npm start", "package.json"),
        ("op run -- python3 -m billing", "billing.py"),
        ("node dist/index --config /etc/hosts", "dist/index.js"),
        ("npm run x", "package.json"),
        ("docker --context far compose run billing", "compose.yaml"),
        ("dotnet run", "billing.csproj"),
        ("mise run mcp", "mise.toml"),
        ("mise exec -- npm start", "package.json"),
        ("fastmcp run server.py:mcp", "server.py"),
        ("nix run .#billing", "flake.nix"),
        ("srv --db=./billing.db", ""),
        ("unknown ./billing.db", "billing.db"),
    ];

    #[test]
    fn words_that_mean_nothing_without_the_directory_are_another_server_in_another_one() {
        for (command, file) in OF_A_PROJECT {
            let [one, other] = [(); 2].map(|()| project(file));
            assert_ne!(of(command, one.path()), of(command, other.path()), "{command}");
            assert_eq!(of(command, one.path()), of(command, one.path()), "{command}");
        }
        for script in [
            "exec python3 billing.py",
            "python3 -m billing",
            "cd src && ./serve",
            "TOKEN=$X npm start",
            "\"$(pwd)/serve\"",
            "$PWD/serve",
            "source ~/.nvm/nvm.sh && node billing.py",
            "./serve",
            "bin/serve",
        ] {
            let [one, other] = [(); 2].map(|()| project("billing.py"));
            for shell in [&["sh", "-c"][..], &["/bin/bash", "-l", "-c"], &["zsh", "-ic"]] {
                let words: Vec<OsString> = shell.iter().chain([&script]).map(OsString::from).collect();
                assert_ne!(of_command(&words, one.path()), of_command(&words, other.path()), "{script}");
            }
        }
    }

    #[test]
    fn words_that_mean_the_same_everywhere_are_one_server_in_every_directory() {
        let fixed = project("pyproject.toml");
        let fixed = fixed.path().display();
        let server = project("server.py");
        let server = server.path().join("server.py").display().to_string();
        for command in [
            "npx -y @scope/server",
            "npm exec -y @scope/server",
            "pnpm dlx @scope/server",
            "yarn dlx @scope/server",
            "bunx @scope/server",
            "uvx mcp-server-git --verbose",
            "uv tool run mcp-server-git",
            "pipx run mcp-server-git",
            "python3 -m mcp_server_git",
            "go run example.com/server@latest",
            "deno run -A npm:@scope/server",
            "docker run -i --rm -e TOKEN mcp/server",
            "docker exec -i billing serve",
            "mise exec -- npx -y @scope/server",
            "npm --loglevel silent exec @scope/server",
            "dotnet /opt/server.dll",
            "node -r dotenv/config /opt/server.js",
            "srv --stdio --region eu",
            "/opt/srv/bin/serve --stdio",
            "env TOKEN=1 npx -y @scope/server",
            "nix run github:owner/server",
            &format!("python3 {server}"),
            &format!("node {server} --x"),
            &format!("uv run --with mcp mcp run {server}"),
            &format!("uv --directory {fixed} run billing"),
            &format!("uv run --project={fixed} billing"),
            &format!("make -C {fixed} mcp"),
        ] {
            let [one, other] = [(); 2].map(|()| project("package.json"));
            std::fs::write(other.path().join("pyproject.toml"), "").unwrap();
            assert_eq!(of(command, one.path()), of(command, other.path()), "{command}");
        }
        for script in [
            "exec npx -y @scope/server".to_owned(),
            ". ~/.nvm/nvm.sh; npx -y @scope/server".to_owned(),
            "source ~/.nvm/nvm.sh && npx -y @scope/server --token \"$TOKEN\" 2>/dev/null".to_owned(),
            format!("cd {fixed} && uv run billing"),
            "cd ~/billing && npm start".to_owned(),
            format!("python3 {server}"),
        ] {
            let [one, other] = [(); 2].map(|()| project("package.json"));
            let words: Vec<OsString> = ["sh", "-c", &script].map(OsString::from).into();
            assert_eq!(of_command(&words, one.path()), of_command(&words, other.path()), "{script}");
        }
    }

    #[test]
    fn a_project_is_the_same_from_the_directories_within_it() {
        for (command, file) in [("npm start", "package.json"), ("uv run billing", "pyproject.toml")] {
            let project = project(file);
            let within = project.path().join("within");
            std::fs::create_dir(&within).unwrap();
            assert_eq!(of(command, project.path()), of(command, &within), "{command}");
        }
    }

    fn project(file: &str) -> tempfile::TempDir {
        let project = tempfile::tempdir().unwrap();
        if !file.is_empty() {
            let file = project.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        project
    }
}
