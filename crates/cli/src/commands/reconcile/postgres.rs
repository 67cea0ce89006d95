//! A PostgreSQL database, read by its own client. The address reaches it by the environment: every process of a machine
//! may read the words that another was started with.

use crate::context::Context;
use crate::output::Hinted;
use anyhow::{anyhow, bail};
use semel_detect::child_process;
use std::borrow::Cow;
use std::process::Command;

/// Parameters of an address, by the variables that say the same to psql.
const PARAMETERS: [(&str, &str); 14] = [
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("dbname", "PGDATABASE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("gssencmode", "PGGSSENCMODE"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("application_name", "PGAPPNAME"),
];

/// The query of the variable `query` becomes a text of the server before it is a query, so it cannot end the command that
/// it stands in. A cursor takes one query that returns rows, and the transaction only reads.
pub const SCRIPT: &str = "\
    BEGIN READ ONLY;\n\
    SELECT set_config('semel.query', :'query', true) \\g /dev/null\n\
    DO $$ DECLARE listing refcursor := 'listing'; \
    BEGIN OPEN listing FOR EXECUTE current_setting('semel.query'); END $$;\n\
    FETCH FORWARD 1000001 FROM listing;\n";

/// psql for [`SCRIPT`], with the query as its variable.
pub fn command(context: &Context, place: &str, query: &str) -> anyhow::Result<Command> {
    let on_command_line = place.contains("://");
    let address =
        if on_command_line { Cow::Borrowed(place) } else { Cow::Owned(context.environment.variable(place)?) };
    let settings = settings(&address)?;
    if on_command_line && settings.iter().any(|(variable, _)| *variable == "PGPASSWORD") {
        return Err(Hinted::error(
            "the password stands on the command line, where every process of this machine can read it"
                .to_owned(),
            "put the URL into a variable and name that: --postgres DATABASE_URL; or use PGPASSWORD or ~/.pgpass",
        ));
    }
    let found = semel_doors::process::program::find(
        "psql",
        &context.environment.search,
        &context.environment.settings.cwd,
    );
    let psql = found.map_err(|_| {
        Hinted::error("psql was not found; nothing was compared".to_owned(), "install the PostgreSQL client")
    })?;
    let query = query.trim().trim_end_matches(';');
    let words = ["--no-psqlrc", "--no-password", "--quiet", "--csv", "--set=ON_ERROR_STOP=1", "--file=-"];
    let query = format!("--set=query={query}");
    let words = words.into_iter().chain([query.as_str()]).map(str::to_owned);
    let mut command =
        child_process::command(&[psql.display().to_string()].into_iter().chain(words).collect::<Vec<_>>());
    command.env("PGCLIENTENCODING", "UTF8");
    command.envs(settings);
    Ok(command)
}

fn settings(address: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| address.strip_prefix(scheme));
    let rest = rest.ok_or_else(|| anyhow!("--postgres: a URL begins with postgres://"))?;
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    // Several hosts are several ports too.
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        let port = host.rfind(':').filter(|colon| !host[*colon..].contains(']'));
        let (name, port) = port.map_or((host, ""), |colon| (&host[..colon], &host[colon + 1..]));
        names.push(name.trim_matches(['[', ']']));
        ports.push(port);
    }
    let ports = if ports.iter().all(|port| port.is_empty()) { String::new() } else { ports.join(",") };
    let names = names.join(",");
    let own = [
        ("host", names.as_str()),
        ("port", &ports),
        ("user", user),
        ("password", password),
        ("dbname", database),
    ];
    let given = parameters.split('&').filter(|pair| !pair.is_empty());
    let given = given.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut settings = Vec::new();
    for (name, value) in own.into_iter().chain(given).filter(|(_, value)| !value.is_empty()) {
        let Some((_, variable)) = PARAMETERS.iter().find(|(known, _)| *known == name) else {
            bail!(
                "--postgres: the parameter {name} of the URL is not passed on; set it by psql's own variable"
            );
        };
        settings.push((*variable, decoded(value)?));
    }
    Ok(settings)
}

fn decoded(text: &str) -> anyhow::Result<String> {
    let broken = || anyhow!("--postgres: the URL has a broken % sign");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                let (high, low) = high.zip(low).ok_or_else(broken)?;
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_variables() {
        let read = |address: &str| {
            let settings = settings(address).expect("an address");
            settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            read("postgres://ann:p%40ss%3A@db.example:5433/bank?sslmode=require"),
            "PGHOST=db.example PGPORT=5433 PGUSER=ann PGPASSWORD=p@ss: PGDATABASE=bank PGSSLMODE=require"
        );
        assert_eq!(read("postgresql:///bank?host=/run/pg"), "PGDATABASE=bank PGHOST=/run/pg");
        assert_eq!(read("postgres://[::1]:1,b/x"), "PGHOST=::1,b PGPORT=1, PGDATABASE=x");
        assert_eq!(read("postgres://[::1]/x"), "PGHOST=::1 PGDATABASE=x");
        for bad in ["mysql://a/b", "postgres://a/b?options=-c", "postgres://a%4/b", "postgres://%ff@a/b"] {
            assert!(settings(bad).is_err(), "{bad}");
        }
    }
}
