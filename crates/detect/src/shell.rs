//! The shell tools of agents: the actions behind a command line, and how a tool says that it ended.

use crate::transcript::ActionCall;
use semel_core::shell::{self, ShellCall};

/// The commands of one line, each as an action with its arguments. A command that only another's failure or a condition
/// brings about is left out: nothing tells whether it ran.
pub fn actions(line: &str) -> Vec<ActionCall> {
    of(shell::calls(line))
}

/// The same of an argument list, as a program gets it.
pub fn actions_of_argv(argv: &[String]) -> Vec<ActionCall> {
    of(shell::calls_of_argv(argv))
}

fn of(calls: Vec<ShellCall>) -> Vec<ActionCall> {
    calls.into_iter().map(|ShellCall { action, arguments }| ActionCall { action, arguments }).collect()
}

/// The exit code that a shell tool wrote into its answer, and the output of the command.
pub fn ended(answer: &str) -> (Option<i64>, &str) {
    const CODES: [&str; 3] = ["Exit code: ", "Exit Code: ", "Process exited with code "];
    const OUTPUTS: [&str; 2] = ["Output:", "Stdout:"];
    let code = answer.lines().find_map(|line| {
        CODES.iter().find_map(|prefix| line.strip_prefix(prefix)).and_then(|code| code.trim().parse().ok())
    });
    let output = OUTPUTS.iter().find_map(|name| {
        let (before, output) = answer.split_once(name)?;
        // Gemini CLI writes how it ended behind the output.
        let output = output.rfind("\nExit Code: ").map_or(output, |end| &output[..end]);
        let output = output
            .rfind("\nError: ")
            .filter(|_| before.starts_with("Command: "))
            .map_or(output, |end| &output[..end]);
        (before.is_empty() || before.ends_with('\n')).then(|| output.trim())
    });
    let output = output.filter(|_| code.is_some());
    (code, output.unwrap_or(answer))
}

/// Whether `curl` says that it sent nothing: a bad address, an unknown host, or no connection.
pub fn says_never_sent(output: &str) -> bool {
    ["curl: (3)", "curl: (5)", "curl: (6)", "curl: (7)"].iter().any(|code| output.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json::Json;

    fn names(line: &str) -> Vec<String> {
        actions(line).into_iter().map(|call| call.action).collect()
    }

    #[test]
    fn a_line_is_the_commands_in_it() {
        assert_eq!(
            names("cd x && gh pr create --title 'a && b'; ls | wc"),
            ["cli:cd", "cli:gh", "cli:ls", "cli:wc"]
        );
        assert_eq!(names("KEY=1 /usr/bin/git push"), ["cli:git"]);
        assert_eq!(names("gh pr view || gh pr create; ls"), ["cli:gh", "cli:ls"]);
        assert_eq!(names(""), Vec::<String>::new());
        assert_eq!(names("echo 'unclosed").len(), 1);
        let script = "cat > pay.sh <<'END'\ncurl -X POST x.example/y\nEND\nchmod +x pay.sh";
        assert_eq!(names(script), ["cli:cat", "cli:chmod"]);
        assert_eq!(names("cat <<END | wc\nls\nEND"), ["cli:cat", "cli:wc"]);
        assert_eq!(names("wc <<< x; ls"), ["cli:wc", "cli:ls"]);
        let many = "cat <<E\nE\n".repeat(50_000);
        assert_eq!(names(&(many + "ls")).len(), 50_001, "documents do not nest");
        let plain = actions("gh issue create --title 'a > b'");
        for before in ["timeout 30", "timeout -k 5 -s KILL 30s", "sudo -u bob", "nice -n 5 env -i A=1", "("] {
            let line = format!("{before} gh issue create --title 'a > b'");
            assert_eq!(actions(&line)[..1], plain[..], "{line}");
        }
        assert_eq!(actions("sudo bash -c \"gh issue create --title 'a > b'\""), plain);
        assert_eq!(actions("OUT=$(gh issue create --title 'a > b')"), plain);
        assert_eq!(names("gh pr view || (gh pr create; ls)"), ["cli:gh"]);
        assert_eq!(names("if gh pr view; then ls; else gh pr create; fi; wc"), ["cli:wc"]);
        assert_eq!(names("echo \"$(gh issue create)\""), ["cli:echo", "cli:gh"]);
        for line in ["2>&1", "2>/dev/null", "> 'my file' 2>& 1", "&>> log", ">|log"] {
            let line = format!("gh issue create --title 'a > b' {line}");
            assert_eq!(actions(&line), plain, "{line}");
            assert_eq!(actions(&format!("{line} | tail -1"))[..1], plain[..], "{line}");
        }
        assert_eq!(actions("gh run 2>&1 view"), actions("gh run view"));
        assert_ne!(actions("gh run a2>x"), actions("gh run a>x"), "the digit belongs to the word");
    }

    #[test]
    fn curl_is_the_request_that_it_makes() {
        let line = "curl -s -X POST https://api.bank.example/v1/charges -H 'A: b' -d '{\"amount\": 5}'";
        let ActionCall { action, arguments } = actions(line).remove(0);
        assert_eq!(action, "http:POST api.bank.example/v1/charges");
        assert_eq!(arguments.get("body").map(Json::canonical).as_deref(), Some(r#"{"amount":5}"#));
        assert_eq!(names("curl https://x.example/y?z=1"), ["http:GET x.example/y"]);
        assert_eq!(names("curl -d a=1 x.example/y"), ["http:POST x.example/y"]);
        assert_eq!(names("curl -XDELETE x.example/y"), ["http:DELETE x.example/y"]);
        assert_eq!(names("curl https://ann:s3cret@x.example/y@z"), ["http:GET x.example/y@z"]);
        assert_eq!(names("curl ann:s3cret@x.example"), ["http:GET x.example"]);
        assert_eq!(names("curl -sSX POST -o out x.example/y"), ["http:POST x.example/y"]);
        assert_eq!(names("sudo curl -sSLI --max-time 5 https://x.example/"), ["http:HEAD x.example"]);
        let form = actions("curl x.example/y?dry=1 -d amount=5 --data-urlencode memo=a").remove(0).arguments;
        assert_eq!(form.canonical(), r#"{"body":{"amount":"5","memo":"a"},"path":"/y","query":{"dry":"1"}}"#);
    }

    #[test]
    fn a_shell_that_is_given_a_line_is_that_line() {
        let argv = ["bash", "-lc", "git push"].map(str::to_owned);
        assert_eq!(actions_of_argv(&argv)[0].action, "cli:git");
    }
}
