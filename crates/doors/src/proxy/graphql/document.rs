//! The structure of a document, as far as it tells what is asked for. `None`: it cannot be read.

use super::tokens::{Kind, Tokens};
use super::{Directive, Field, Graphql, KeyValue, Operation};

/// More definitions, or fields of one operation, than this were generated to do harm.
const ITEMS_MAX: usize = 1_000;

/// One operation of a document.
struct Defined {
    name: Option<String>,
    operation: Operation,
    fields: Vec<Field>,
}

/// Reads a document, of which the operation of that name is wanted, or any.
pub fn read(document: &str, wanted: Option<&str>) -> Option<Graphql> {
    let mut tokens = Tokens::of(document);
    let mut operations = Vec::new();
    for _ in 0..ITEMS_MAX {
        let Some(token) = tokens.next()? else { break };
        match (token.kind, token.text) {
            (Kind::Mark, "{") => {
                let fields = selections(&mut tokens)?;
                operations.push(Defined { name: None, operation: Operation::Query, fields });
            }
            (Kind::Name, "fragment") => {
                let named = [tokens.next()??, tokens.next()??, tokens.next()??];
                (named.iter().all(|token| token.kind == Kind::Name) && named[1].text == "on").then_some(())?;
                directives(&mut tokens)?;
                tokens.mark("{")?;
                selections(&mut tokens)?;
            }
            (Kind::Name, word) => {
                let operation = Operation::of(word)?;
                let name = tokens.take_if(|token| token.kind == Kind::Name)?;
                let name = name.map(|token| token.text.to_owned());
                if tokens.take_if(|token| token.is("("))?.is_some() {
                    skip(&mut tokens, ")")?;
                }
                directives(&mut tokens)?;
                tokens.mark("{")?;
                operations.push(Defined { name, operation, fields: selections(&mut tokens)? });
            }
            _ => return None,
        }
    }
    if tokens.next()?.is_some() {
        return None;
    }
    let mut meant = operations
        .into_iter()
        .filter(|operation| wanted.is_none_or(|wanted| operation.name.as_deref() == Some(wanted)));
    let first = meant.next()?;
    let mut only_asks = first.operation == Operation::Query;
    let mut graphql = Graphql { operation: first.operation, fields: first.fields, only_asks };
    for other in meant {
        // Which of them the upstream takes is not known, so the strongest counts.
        only_asks &= other.operation == Operation::Query;
        if graphql.operation != Operation::Mutation {
            graphql.operation = other.operation;
        }
        graphql.fields.extend(other.fields);
    }
    graphql.only_asks = only_asks;
    Some(graphql)
}

/// The fields of a selection, after its opening brace and up to its closing one.
fn selections(tokens: &mut Tokens<'_>) -> Option<Vec<Field>> {
    let mut fields: Vec<Field> = Vec::new();
    loop {
        let token = tokens.next()??;
        if token.is("}") {
            return Some(fields);
        }
        if fields.len() == ITEMS_MAX {
            return None;
        }
        if token.is("...") {
            // What a fragment adds is not looked up: it counts as a field that nobody can put a key to.
            let on = tokens.take_if(|token| token.kind == Kind::Name)?;
            let on = match on {
                Some(on) if on.text == "on" => tokens.next()?.filter(|token| token.kind == Kind::Name),
                spread => spread,
            };
            directives(tokens)?;
            if tokens.take_if(|token| token.is("{"))?.is_some() {
                skip(tokens, "}")?;
            }
            let name = format!("...{}", on.map_or("", |on| on.text));
            fields.push(Field { name: name.clone(), directives_at: 0, directives: Vec::new() });
            fields.push(Field { name, directives_at: 0, directives: Vec::new() });
            continue;
        }
        (token.kind == Kind::Name).then_some(())?;
        let mut name = token;
        if tokens.take_if(|token| token.is(":"))?.is_some() {
            name = tokens.next()?.filter(|token| token.kind == Kind::Name)?;
        }
        let mut directives_at = name.end();
        if tokens.take_if(|token| token.is("("))?.is_some() {
            directives_at = skip(tokens, ")")?;
        }
        let directives = directives(tokens)?;
        if tokens.take_if(|token| token.is("{"))?.is_some() {
            skip(tokens, "}")?;
        }
        fields.push(Field { name: name.text.to_owned(), directives_at, directives });
    }
}

fn directives(tokens: &mut Tokens<'_>) -> Option<Vec<Directive>> {
    let mut all = Vec::new();
    while tokens.take_if(|token| token.is("@"))?.is_some() {
        let name = tokens.next()?.filter(|token| token.kind == Kind::Name)?.text.to_owned();
        let mut key = None;
        if tokens.take_if(|token| token.is("("))?.is_some() {
            key = arguments(tokens)?;
        }
        if all.len() == ITEMS_MAX {
            return None;
        }
        all.push(Directive { name, key });
    }
    Some(all)
}

/// A directive's arguments after their parenthesis, of which only `key` is of interest.
fn arguments(tokens: &mut Tokens<'_>) -> Option<Option<KeyValue>> {
    let mut key = None;
    loop {
        let name = tokens.next()??;
        if name.is(")") {
            return Some(key);
        }
        (name.kind == Kind::Name).then_some(())?;
        tokens.mark(":")?;
        let value = tokens.next()??;
        let read = match (value.kind, value.text) {
            (Kind::Mark, "$") => Some(KeyValue::Variable(tokens.next()??.text.to_owned())),
            (Kind::Mark, "[") => skip(tokens, "]").map(|_| None)?,
            (Kind::Mark, "{") => skip(tokens, "}").map(|_| None)?,
            (Kind::Mark, _) => return None,
            // Its escapes are those of JSON, but for one that no key needs.
            (Kind::Text, text) => {
                Some(KeyValue::Text { value: serde_json::from_str(text).ok()?, at: value.range() })
            }
            _ => None,
        };
        if name.text == "key" {
            key = read;
        }
    }
}

/// Passes over everything up to the mark that closes what was opened last. Returns where that mark ends.
fn skip(tokens: &mut Tokens<'_>, closing: &str) -> Option<usize> {
    let mut open = vec![closing];
    while let Some(expected) = open.last() {
        let token = tokens.next()??;
        match (token.kind, token.text) {
            (Kind::Mark, "{") => open.push("}"),
            (Kind::Mark, "(") => open.push(")"),
            (Kind::Mark, "[") => open.push("]"),
            (Kind::Mark, mark @ ("}" | ")" | "]")) => {
                (mark == *expected).then_some(())?;
                open.pop();
                if open.is_empty() {
                    return Some(token.end());
                }
            }
            _ => {}
        }
    }
    None
}
