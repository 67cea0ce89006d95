//! The action behind a shell command. Agents do much of their work through one shell tool; the guard knows commands by
//! their words and HTTP requests by method and address, so a command line is translated into those.

use crate::transcript::ActionCall;
use semel_core::json::Json;
use std::iter::Peekable;
use std::str::CharIndices;

/// The commands of one line, each as an action with its arguments.
pub fn actions(line: &str) -> Vec<ActionCall> {
    simple_commands(line).iter().flat_map(|words| actions_of_argv(words)).collect()
}

/// An argument list, as a program gets it. A shell that is given a line is that line.
pub fn actions_of_argv(argv: &[String]) -> Vec<ActionCall> {
    let argv = without_runners(argv);
    let is_shell = argv.first().is_some_and(|program| {
        ["sh", "bash", "zsh", "dash"].contains(&program.rsplit('/').next().unwrap_or_default())
    });
    match argv {
        [_, flag, line, ..] if is_shell && flag.starts_with('-') && flag.ends_with('c') => actions(line),
        _ => action(argv).into_iter().collect(),
    }
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

/// Programs that run the command behind them: the letters of their options with a value, and how many words stand before
/// the command.
const RUNNERS: [(&str, &str, usize); 9] = [
    ("sudo", "CDghpRrTtUu", 0),
    ("timeout", "ks", 1),
    ("env", "CSu", 0),
    ("nice", "n", 0),
    ("stdbuf", "eio", 0),
    ("time", "fo", 0),
    ("nohup", "", 0),
    ("exec", "a", 0),
    ("command", "", 0),
];

fn without_runners(mut words: &[String]) -> &[String] {
    loop {
        let Some((first, behind)) = words.split_first() else { return words };
        if first.split_once('=').is_some_and(|(name, _)| is_variable(name)) {
            words = behind;
            continue;
        }
        let program = first.rsplit('/').next().unwrap_or_default();
        let Some((_, with_value, before)) = RUNNERS.iter().find(|(name, ..)| *name == program) else {
            return words;
        };
        words = behind;
        while let [option, rest @ ..] = words
            && let Some(letters) = option.strip_prefix('-')
        {
            let has_value = letters.len() == 1 && with_value.contains(letters);
            words = if has_value { rest.get(1..).unwrap_or_default() } else { rest };
        }
        words = words.get(*before..).unwrap_or_default();
    }
}

fn action(words: &[String]) -> Option<ActionCall> {
    let program = words.first()?.rsplit('/').next().unwrap_or_default().to_owned();
    if program == "curl" {
        return Some(curl(words));
    }
    let argv = Json::object([("argv", Json::Array(words.iter().map(|word| Json::str(word)).collect()))]);
    Some(ActionCall { action: format!("cli:{program}"), arguments: argv })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Options of `curl` with a value: their letters, and the long ones that a request is seldom made without.
const CURL_LETTERS: &str = "AbcCdDeEFHKmoPQrtTuUwxXyYz";
const CURL_LONG: &[&str] = &[
    "cacert",
    "cert",
    "connect-timeout",
    "cookie",
    "cookie-jar",
    "data",
    "data-binary",
    "data-raw",
    "data-urlencode",
    "form",
    "header",
    "json",
    "key",
    "max-time",
    "output",
    "proxy",
    "request",
    "resolve",
    "retry",
    "retry-delay",
    "retry-max-time",
    "url",
    "user",
    "user-agent",
    "write-out",
];

/// A request that `curl` makes, as the HTTP door names it.
fn curl(words: &[String]) -> ActionCall {
    let (mut method, mut addresses, mut body) = (None, Vec::new(), Vec::new());
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let (name, value) = if let Some(long) = word.strip_prefix("--") {
            match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None if CURL_LONG.contains(&long) => (long, rest.next().cloned()),
                None => (long, None),
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // Letters stand together, and the value of the last may too: `-sXPOST`.
            match letters.find(|letter| CURL_LETTERS.contains(letter)) {
                Some(at) => {
                    let (letter, value) = letters[at..].split_at(1);
                    let value = Some(value.to_owned()).filter(|value| !value.is_empty());
                    (letter, value.or_else(|| rest.next().cloned()))
                }
                None => (letters.trim_matches(|letter| !"IG".contains(letter)), None),
            }
        } else {
            addresses.push(word.clone());
            continue;
        };
        match name {
            "X" | "request" => method = value,
            "I" | "head" => method = Some("HEAD".to_owned()),
            "G" | "get" => method = Some("GET".to_owned()),
            "url" => addresses.extend(value),
            "d" | "F" | "json" | "form" => body.extend(value),
            _ if name.starts_with("data") => body.extend(value),
            _ => {}
        }
    }
    let method = method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    let address = addresses.iter().find(|address| address.contains("://")).or(addresses.first());
    let address = address.map_or("", String::as_str);
    let place = address.split_once("://").map_or(address, |(_, place)| place);
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    // A name and a password are no part of the address.
    let host_from = place[..place.find('/').unwrap_or(place.len())].rfind('@').map_or(0, |at| at + 1);
    let place = &place[host_from..];
    let place = place.trim_end_matches('/');
    let path = place.find('/').map_or("/", |at| &place[at..]);
    let body = body.join("&");
    let body = semel_core::json::parse_bounded(body.as_bytes()).unwrap_or_else(|_| fields(&body));
    let arguments = Json::object([("path", Json::str(path)), ("query", fields(query)), ("body", body)]);
    ActionCall { action: format!("http:{method} {place}"), arguments }
}

/// The fields of a form, as they are written; any other text is itself.
fn fields(text: &str) -> Json {
    let pairs: Option<Vec<(&str, &str)>> = text.split('&').map(|pair| pair.split_once('=')).collect();
    match pairs {
        Some(pairs) => {
            Json::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), Json::str(value))).collect())
        }
        None => Json::str(text),
    }
}

/// Splits a line at `&&`, `||`, `;`, `|`, `&`, parentheses and line ends outside of quotes, and each part into words. A
/// document within the line (`<<END`) is input, no commands.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut rest = Some(line);
    while let Some(line) = rest {
        let (parts, behind_document) = split_to_document(line);
        commands.extend(words_of(parts));
        rest = behind_document;
    }
    commands
}

/// The parts of a line up to the end of its first document, and the rest behind that.
fn split_to_document(line: &str) -> (Vec<String>, Option<&str>) {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut quote, mut escaped) = (None, false);
    // Behind `||` stands what runs only if the command before it failed, and nothing tells whether it did.
    let mut is_alternative = false;
    let mut document_end: Option<String> = None;
    let mut rest = line.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '<') if rest.next_if(|(_, next)| *next == '<').is_some() => {
                if rest.next_if(|(_, next)| *next == '<').is_none() {
                    let word: String =
                        rest.clone().map(|(_, c)| c).take_while(|c| !";|&\n)".contains(*c)).collect();
                    let word = word.trim_start_matches('-').split_whitespace().next().unwrap_or_default();
                    document_end = Some(word.replace(['\'', '"', '\\'], ""));
                }
                continue;
            }
            (None, '>') => {
                skip_redirection(&mut part, &mut rest);
                continue;
            }
            (None, '&') if rest.next_if(|(_, next)| *next == '>').is_some() => {
                skip_redirection(&mut part, &mut rest);
                continue;
            }
            (None, ';' | '|' | '&' | '\n' | '(' | ')') => {
                let ended = std::mem::take(&mut part);
                if !is_alternative {
                    parts.push(ended);
                }
                // Of a group behind `||` the first command is left out too.
                is_alternative = c == '|' && rest.next_if(|(_, next)| *next == '|').is_some()
                    || c == '(' && is_alternative;
                if let Some(end) = document_end.take_if(|_| c == '\n') {
                    let after = &line[at + 1..];
                    let body_lines = after.split_inclusive('\n').take_while(|line| line.trim() != end);
                    let body: usize = body_lines.map(str::len).sum();
                    return (parts, after[body..].split_once('\n').map(|(_, behind)| behind));
                }
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    if !is_alternative {
        parts.push(part);
    }
    (parts, None)
}

/// Output that goes elsewhere makes no other command: `2>&1`, `> file`, `&>> file`.
fn skip_redirection(part: &mut String, rest: &mut Peekable<CharIndices<'_>>) {
    let before = part.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if part[..before].ends_with(char::is_whitespace) {
        part.truncate(before);
    }
    while rest.next_if(|(_, c)| ">&|".contains(*c)).is_some() {}
    while rest.next_if(|(_, c)| " \t".contains(*c)).is_some() {}
    let mut quote = None;
    let is_of_target = |c: char| !(c.is_whitespace() || ";|&<>()".contains(c));
    while let Some((_, c)) = rest.next_if(|(_, c)| quote.is_some() || is_of_target(*c)) {
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
    }
}

fn words_of(parts: Vec<String>) -> Vec<Vec<String>> {
    let words =
        parts.iter().map(|part| shlex::split(part.trim()).unwrap_or_else(|| vec![part.trim().to_owned()]));
    words.filter(|words| words.first().is_some_and(|word| !word.is_empty())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(names("gh pr view || (gh pr create; ls)"), ["cli:gh", "cli:ls"]);
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
