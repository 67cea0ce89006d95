//! Forms that secrets take in the arguments of servers, beyond those that every text is searched for. What is masked
//! here is only shown, so that a word too many costs nothing.

use super::mask::MASK;
use semel_core::identity::is_secret_name;

/// The last word of names whose value is a secret on a command line or in a connection string. Elsewhere they are words
/// like others: a key is also a column, and `pwd` a directory.
const LAST_WORDS: [&str; 10] = ["auth", "key", "keys", "pat", "pwd", "pass", "cred", "creds", "sas", "dsn"];

/// Whole texts that hold a password somewhere, in a form of each database's own.
const CONNECTIONS: [&str; 3] = ["connectionstring", "connstring", "connstr"];

/// A user name of this length is a token that stands in its place.
const TOKEN_BYTES_MIN: usize = 16;

/// An argument in the light of the one before it. None: neither says anything.
pub fn argument(before: Option<&str>, value: &str) -> Option<String> {
    if let Some(shown) = before.and_then(|flag| after(flag, value)) {
        return Some(shown);
    }
    let (flag, value) = value.split_once('=').filter(|(flag, _)| flag.starts_with('-'))?;
    Some(format!("{flag}={}", after(flag, value)?))
}

/// What a flag makes of its value.
fn after(flag: &str, value: &str) -> Option<String> {
    let is_value = !value.is_empty() && !value.starts_with("--");
    match flag {
        _ if !is_value => None,
        // `Bearer` and its token as two words.
        "Bearer" | "Basic" => Some(masked(value)),
        "-e" | "--env" => named(value, '='),
        "-H" => named(value, ':'),
        _ if !flag.starts_with('-') => None,
        _ if flag.ends_with("-header") || flag.ends_with("-headers") => {
            named(value, ':').or_else(|| named(value, '='))
        }
        _ => is_secret(flag).then(|| masked(value)),
    }
}

/// `NAME: value` or `NAME=value`, of which the name may be seen.
fn named(value: &str, separator: char) -> Option<String> {
    let (name, value) = value.split_once(separator)?;
    let (space, value) = value.split_at(value.len() - value.trim_start().len());
    Some(format!("{name}{separator}{space}{}", masked(value)))
}

fn is_secret(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let separators = ['-', '_', '.', ' '];
    let last = name.rsplit(separators).next().unwrap_or_default();
    LAST_WORDS.contains(&last)
        || CONNECTIONS.iter().any(|whole| name.replace(separators, "").ends_with(whole))
}

fn masked(value: &str) -> String {
    if is_placeholder(value) || value.is_empty() { value.to_owned() } else { MASK.to_owned() }
}

/// `${VAR}`, `$VAR` or `Bearer ${input:token}`: the secret is elsewhere. `${VAR:-text}` holds one.
pub fn is_placeholder(value: &str) -> bool {
    let value = value.strip_prefix("Bearer ").unwrap_or(value);
    let Some(inner) = value.strip_prefix('$') else { return false };
    let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
    let named = inner.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-'));
    named && !inner.is_empty() && !inner.contains(":-")
}

/// A text without the passwords of its addresses and connection strings.
pub fn without_passwords(text: &str) -> String {
    let shown = without_user_info(text);
    if shown.contains(';') { without_pairs(&shown) } else { shown }
}

/// `Server=x;Password=y;`, where only a semicolon or a quote ends a value.
pub fn without_pairs(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(equals) = rest.find('=') {
        let (before, value) = rest.split_at(equals + 1);
        shown.push_str(before);
        rest = value;
        let name = before[..equals].rsplit([';', '\n', '"', '\'', '?', '&']).next().unwrap_or_default();
        if is_secret_name(name) || is_secret(name) {
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
            let end = match quote {
                Some(quote) => value[1..].find(quote).map(|end| end + 2),
                None => value.find([';', '\n', '"', '&']),
            };
            let (value, beyond) = value.split_at(end.unwrap_or(value.len()));
            shown.push_str(&masked(value));
            rest = beyond;
        }
    }
    shown + rest
}

/// `scheme://user:password@host`, also where the password holds what ends an address elsewhere.
fn without_user_info(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        shown.push_str(before);
        let end = after.find(|c: char| matches!(c, '"' | '\'' | '`') || c.is_whitespace());
        let address = &after[..end.unwrap_or(after.len())];
        let authority = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
        let has_port = |authority: &str| {
            let port = authority.rsplit_once(':').map(|(_, port)| port);
            port.is_none_or(|port| port.bytes().all(|b| b.is_ascii_digit()))
        };
        let info = match authority.rfind('@') {
            None if has_port(authority) || authority.starts_with('[') => None,
            None => address.rfind('@'),
            at => at,
        };
        let (info, beyond) = after.split_at(info.unwrap_or_default());
        shown.push_str(&match info.split_once(':') {
            Some((user, password)) => format!("{}:{}", user_name(user), masked(password)),
            None => user_name(info),
        });
        rest = beyond;
    }
    shown + rest
}

fn user_name(user: &str) -> String {
    if user.len() < TOKEN_BYTES_MIN { user.to_owned() } else { masked(user) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_tells_what_its_value_is() {
        for (flag, value, expected) in [
            ("--auth", "user:hunter2", "***"),
            ("--key", "hunter2", "***"),
            ("--pat", "hunter2", "***"),
            ("--db-pass", "hunter2", "***"),
            ("--connection-string", "Server=x;Password=hunter2;", "***"),
            ("--connectionString", "Server=x;Password=hunter2;", "***"),
            ("--header", "X-Auth: hunter2", "X-Auth: ***"),
            ("--header", "X-Token:hunter2", "X-Token:***"),
            ("--header", "Authorization: Bearer ${TOKEN}", "Authorization: Bearer ${TOKEN}"),
            ("-H", "X-Team: hunter2", "X-Team: ***"),
            ("-e", "LEVEL=hunter2", "LEVEL=***"),
            ("--env", "LEVEL=${LEVEL}", "LEVEL=${LEVEL}"),
            ("Bearer", "hunter2", "***"),
            ("--key", "${KEY}", "${KEY}"),
        ] {
            assert_eq!(argument(Some(flag), value).as_deref(), Some(expected), "{flag} {value}");
            if flag.starts_with("--") {
                let (one, expected) = (format!("{flag}={value}"), format!("{flag}={expected}"));
                assert_eq!(argument(Some("-y"), &one), Some(expected), "{flag}={value}");
            }
        }
        for (flag, value) in [
            ("--author", "ann"),
            ("--key-file", "a.pem"),
            ("--key", "--verbose"),
            ("-e", "NAME"),
            ("key", "value"),
            ("-y", "@scope/package@1.2"),
        ] {
            assert_eq!(argument(Some(flag), value), None, "{flag} {value}");
        }
    }

    #[test]
    fn passwords_in_addresses_and_connection_strings_go() {
        for (text, expected) in [
            ("Server=x;Password=hunter2;", "Server=x;Password=***;"),
            ("Server=x;User Id=ann;Pwd=hunter2", "Server=x;User Id=ann;Pwd=***"),
            ("AccountName=a;AccountKey=aHVudGVyMg==;Suffix=b", "AccountName=a;AccountKey=***;Suffix=b"),
            ("Endpoint=sb://x/;SharedAccessKey=hunter2=", "Endpoint=sb://x/;SharedAccessKey=***"),
            ("Password='hunt;er2';Server=x", "Password=***;Server=x"),
            (
                "jdbc:sqlserver://db:1433;user=ann;password=hunter2",
                "jdbc:sqlserver://db:1433;user=ann;password=***",
            ),
            ("redis://:hunter2@db/0", "redis://:***@db/0"),
            ("mongodb+srv://ann:hunter2@db/x", "mongodb+srv://ann:***@db/x"),
            ("postgres://ann:hun/ter?2@db/x", "postgres://ann:***@db/x"),
            ("https://0123456789abcdef@host/x", "https://***@host/x"),
            ("a https://x:hunter2@h and ftp://y:hunter2@i", "a https://x:***@h and ftp://y:***@i"),
            ("https://ann@host/x", "https://ann@host/x"),
            ("https://host:8080/@scope/x", "https://host:8080/@scope/x"),
            ("a; b = c", "a; b = c"),
        ] {
            assert_eq!(without_passwords(text), expected);
        }
    }
}
