//! `semel token`: who may use `semel serve`, and for what.

use crate::args::{TokenArgs, TokenCommand, TokenCreate, TokenScope};
use crate::context::Context;
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::Hinted;
use crate::{table, terminal_text};
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::tokens::{AccessScope, StoredToken, TokenRequest};
use serde::Serialize;
use std::process::ExitCode;

pub fn run(context: &Context, args: &TokenArgs) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    match &args.command {
        TokenCommand::Create(create) => make(context, create, &clock),
        TokenCommand::List => list(context, &clock),
        TokenCommand::Revoke { id } => revoke(context, id, &clock),
    }?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct TokenJson {
    id: String,
    scope: AccessScope,
    tenant: String,
    name: Option<String>,
    created_at: String,
    expires_at: Option<String>,
    expired: bool,
}

impl TokenJson {
    fn of(id: &str, kept: &StoredToken, now: At) -> TokenJson {
        TokenJson {
            id: id.to_owned(),
            scope: kept.scope,
            tenant: kept.tenant.clone(),
            name: kept.name.clone(),
            created_at: kept.created_at.to_string(),
            expires_at: kept.expires_at.map(|at| at.to_string()),
            expired: kept.is_over(now),
        }
    }
}

fn make(context: &Context, create: &TokenCreate, clock: &SystemClock) -> anyhow::Result<()> {
    let scope = match create.scope {
        TokenScope::Agent => AccessScope::Agent,
        TokenScope::Operator => AccessScope::Operator,
        TokenScope::Admin => AccessScope::Admin,
    };
    // A maker of tokens that rule may rule.
    let operator = match scope {
        AccessScope::Agent => None,
        AccessScope::Operator | AccessScope::Admin => {
            Some(Operator::find(context, create.operator.token.as_deref())?)
        }
    };
    let now = clock.now();
    let tenant = create.tenant.as_deref().unwrap_or(TENANT);
    let new =
        TokenRequest::new(tenant, scope, create.name.as_deref(), create.expires.map(|span| now.plus(span)))?;
    let ledger = context.ledger(clock)?;
    if let Some(operator) = operator {
        let what = format!("Make a token that rules (scope {scope}, tenant {tenant})?");
        operator.confirm_as(AccessScope::Admin, &ledger, tenant, what)?;
    }
    let made = block_on(ledger.make_token(&new, now))?;
    if context.output.json {
        let mut document = serde_json::to_value(TokenJson::of(&made.id, &made.kept, now))?;
        document["token"] = made.text.into();
        context.output.document(&document);
    } else {
        context.output.data(&made.text);
        context.output.say(format_args!(
            "semel: this is shown once; it is token {}, scope {scope}, tenant {tenant}. hint: semel token revoke {}",
            made.id, made.id
        ));
    }
    Ok(())
}

fn list(context: &Context, clock: &SystemClock) -> anyhow::Result<()> {
    let now = clock.now();
    let tokens = match context.existing_ledger(clock)? {
        Some(ledger) => block_on(ledger.tokens())?,
        None => Default::default(),
    };
    let items: Vec<TokenJson> = tokens.0.iter().map(|(id, kept)| TokenJson::of(id, kept, now)).collect();
    if context.output.json {
        context.output.list(&items, None);
        return Ok(());
    }
    if items.is_empty() {
        context.output.say("no tokens; hint: semel token create --scope agent");
        return Ok(());
    }
    let rows = items.iter().map(|token| {
        let until = match (&token.expires_at, token.expired) {
            (Some(at), true) => format!("over since {at}"),
            (Some(at), false) => at.clone(),
            (None, _) => "no end".to_owned(),
        };
        let name = token.name.as_deref().map(terminal_text::line).unwrap_or_default();
        vec![
            token.id.clone(),
            token.scope.word().to_owned(),
            token.tenant.clone(),
            name,
            token.created_at.clone(),
            until,
        ]
    });
    for line in table::plain(&["TOKEN", "SCOPE", "TENANT", "NAME", "SINCE", "UNTIL"], rows) {
        context.output.data(line);
    }
    Ok(())
}

fn revoke(context: &Context, id: &str, clock: &SystemClock) -> anyhow::Result<()> {
    let unknown = || Hinted::error(format!("there is no token {id}"), "semel token list");
    let ledger = context.existing_ledger(clock)?.ok_or_else(unknown)?;
    let now = clock.now();
    let kept = block_on(ledger.revoke_token(id, None, now))?.ok_or_else(unknown)?;
    if context.output.json {
        context.output.document(&TokenJson::of(id, &kept, now));
    } else {
        context.output.data(format_args!("Revoked: {id}. Servers refuse it within two seconds."));
    }
    Ok(())
}
