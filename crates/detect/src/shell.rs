//! The action behind a shell command. Agents do much of their work through one shell tool; the guard knows commands by
//! their words and HTTP requests by method and address, so a command line is translated into those.

use crate::transcript::ActionCall;
use semel_core::json::Json;

/// The commands of one line, each as an action with its arguments.
pub fn actions(line: &str) -> Vec<ActionCall> {
    simple_commands(line).into_iter().filter_map(|words| action(&words)).collect()
}

/// An argument list, as a program gets it. A shell that is given a line is that line.
pub fn actions_of_argv(argv: &[String]) -> Vec<ActionCall> {
    let is_shell = argv.first().is_some_and(|program| {
        ["sh", "bash", "zsh", "dash"].contains(&program.rsplit('/').next().unwrap_or_default())
    });
    match argv {
        [_, flag, line] if is_shell && flag.starts_with('-') && flag.ends_with('c') => actions(line),
        _ => action(argv).into_iter().collect(),
    }
}

fn action(words: &[String]) -> Option<ActionCall> {
    let assigns = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_variable(name));
    let words: Vec<String> = words.iter().skip_while(assigns).cloned().collect();
    let program = words.first()?.rsplit('/').next().unwrap_or_default().to_owned();
    if program == "curl" {
        return Some(curl(&words));
    }
    let argv = Json::object([("argv", Json::Array(words.iter().map(|word| Json::str(word)).collect()))]);
    Some(ActionCall { action: format!("cli:{program}"), arguments: argv })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A request that `curl` makes, as the HTTP door names it.
fn curl(words: &[String]) -> ActionCall {
    let (mut method, mut address, mut body) = (None, None, Vec::new());
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let (flag, inline) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        match flag {
            "-X" | "--request" => method = inline.or_else(|| rest.next().cloned()),
            "-d" | "--data" | "--data-raw" | "--data-binary" | "--data-urlencode" | "--json" | "-F"
            | "--form" => {
                body.extend(inline.or_else(|| rest.next().cloned()));
            }
            "-I" | "--head" => method = Some("HEAD".to_owned()),
            "-G" | "--get" => method = Some("GET".to_owned()),
            "-H" | "--header" | "-u" | "--user" | "-o" | "--output" | "-A" | "-b" | "-c" | "-m"
            | "--max-time" | "--connect-timeout" | "-w" | "--write-out" | "--retry" | "-x" | "--proxy"
            | "--cacert" | "-e" => {
                if inline.is_none() {
                    rest.next();
                }
            }
            "--url" => address = inline.or_else(|| rest.next().cloned()),
            _ if word.starts_with("-X") => method = Some(word[2..].to_owned()),
            _ if word.starts_with("-d") => body.push(word[2..].to_owned()),
            _ if word.starts_with('-') => {}
            _ => address = address.or_else(|| Some(word.clone())),
        }
    }
    let method = method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    let address = address.unwrap_or_default();
    let place = address.split_once("://").map_or(address.as_str(), |(_, place)| place);
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let body = body.join("&");
    let body = semel_core::json::parse_bounded(body.as_bytes()).unwrap_or_else(|_| Json::str(&body));
    let arguments = Json::object([("path", Json::str(place)), ("query", Json::str(query)), ("body", body)]);
    ActionCall { action: format!("http:{method} {place}"), arguments }
}

/// Splits a line at `&&`, `||`, `;`, `|`, `&` and line ends outside of quotes, and each part into words.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut quote, mut escaped) = (None, false);
    // Behind `||` stands what runs only if the command before it failed, and nothing tells whether it did.
    let mut is_alternative = false;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ';' | '|' | '&' | '\n') => {
                let ended = std::mem::take(&mut part);
                if !is_alternative {
                    parts.push(ended);
                }
                is_alternative = c == '|' && rest.next_if_eq(&'|').is_some();
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    if !is_alternative {
        parts.push(part);
    }
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
    }

    #[test]
    fn a_shell_that_is_given_a_line_is_that_line() {
        let argv = ["bash", "-lc", "git push"].map(str::to_owned);
        assert_eq!(actions_of_argv(&argv)[0].action, "cli:git");
    }
}
