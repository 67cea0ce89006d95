//! `semel token`: who may use `semel serve`, and for what.

use crate::args::{TokenArgs, TokenCommand, TokenCreate, TokenRevoke, TokenScope};
use crate::change;
use crate::context::Context;
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::Hinted;
use crate::{table, terminal_text};
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::policy::duration;
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::tokens::{AccessScope, StoredToken, TokenOnce, TokenRequest};
use serde::Serialize;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(context: &Context, args: &TokenArgs) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    match &args.command {
        TokenCommand::Create(create) => Ok(context.answer(make(context, create, &clock)?)),
        TokenCommand::List => list(context, &clock).map(|()| ExitCode::SUCCESS),
        TokenCommand::Revoke(args) => Ok(context.answer(revoke(context, args, &clock)?)),
    }
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

    fn document(id: &str, kept: &StoredToken, now: At) -> anyhow::Result<Value> {
        Ok(serde_json::to_value(TokenJson::of(id, kept, now))?)
    }
}

fn make(context: &Context, create: &TokenCreate, clock: &SystemClock) -> anyhow::Result<Change> {
    let scope = match create.scope {
        TokenScope::Agent => AccessScope::Agent,
        TokenScope::Operator => AccessScope::Operator,
        TokenScope::Admin => AccessScope::Admin,
    };
    // A maker of tokens that rule may rule.
    let operator = match scope {
        AccessScope::Agent => None,
        AccessScope::Operator | AccessScope::Admin => {
            Operator::unless_dry(context, &create.operator, &create.change)?
        }
    };
    let now = clock.now();
    let tenant = create.tenant.as_deref().unwrap_or(TENANT);
    let new =
        TokenRequest::new(tenant, scope, create.name.as_deref(), create.expires.map(|span| now.plus(span)))?;
    if create.change.dry_run {
        let document = json!({"scope": scope, "tenant": tenant, "name": create.name});
        return Ok(Change::would(EffectWord::Created, document));
    }
    let ledger = context.ledger(clock)?;
    if let Some(operator) = operator {
        let what = format!("Make a token that rules (scope {scope}, tenant {tenant})?");
        operator.confirm_as(AccessScope::Admin, &ledger, tenant, what)?;
    }
    let name = create.name.as_deref().unwrap_or_default();
    // The same lifetime, not the same end.
    let expires = create.expires.map(duration::text).unwrap_or_default();
    let arguments = [scope.word(), tenant, name, &expires].map(str::as_bytes);
    let made = match change::key(&create.change, &arguments) {
        None => TokenOnce::Made(block_on(ledger.make_token(&new, now))?),
        Some(key) => block_on(ledger.make_token_once(&new, key, now))?,
    };
    match made {
        TokenOnce::Made(made) => {
            let mut document = TokenJson::document(&made.id, &made.kept, now)?;
            document["token"] = made.text.as_str().into();
            let shares = match &made.kept.name {
                Some(name) => format!("only with tokens named {}", terminal_text::line(name)),
                None => "with no other token; those of a fleet need one --name".to_owned(),
            };
            let hint = format!(
                "semel: this is shown once; it is token {}, scope {scope}, tenant {tenant}. It shares effects {shares}. \
                 hint: semel token revoke {}",
                made.id, made.id
            );
            Ok(Change { hint: Some(hint), ..Change::created(document, made.text) })
        }
        TokenOnce::MadeBefore { id, kept } => {
            let mut document = TokenJson::document(&id, &kept, now)?;
            document["token"] = Value::Null;
            let text =
                format!("Token {id} was made before, and shown then. To replace it: semel token revoke {id}");
            Ok(Change::noop(document, text))
        }
    }
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

fn revoke(context: &Context, args: &TokenRevoke, clock: &SystemClock) -> anyhow::Result<Change> {
    let id = args.id.as_str();
    let unknown = || Hinted::error(format!("there is no token {id}"), "semel token list");
    let ledger = context.existing_ledger(clock)?.ok_or_else(unknown)?;
    let now = clock.now();
    let kept = match args.change.dry_run {
        true => block_on(ledger.tokens())?.0.remove(id),
        false => block_on(ledger.revoke_token(id, None, now))?,
    };
    let Some(kept) = kept else {
        // A mistyped id must not look like a token that is worthless now.
        return match block_on(ledger.was_revoked(id))? {
            true => Ok(Change::noop(json!({"id": id}), format!("Revoked before: {id}."))),
            false => Err(unknown()),
        };
    };
    let document = TokenJson::document(id, &kept, now)?;
    Ok(match args.change.dry_run {
        true => Change::would(EffectWord::Deleted, document),
        false => {
            let text = format!("Revoked: {id}. Servers refuse it within two seconds.");
            Change::deleted(document, text)
        }
    })
}
