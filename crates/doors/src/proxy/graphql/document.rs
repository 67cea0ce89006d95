//! The structure of a document, as far as it tells what is asked for. `None`: it cannot be read.

use super::operation::{Directive, Field, Graphql, GraphqlOperation, KeyValue};
use super::tokens::{Lexer, TokenKind};
use std::borrow::Borrow;
use std::collections::HashMap;

/// More definitions, or fields of one operation, than this were generated to do harm.
const ITEMS_MAX: usize = 1_000;

/// How deep fragments may lie in each other.
const DEPTH_MAX: usize = 32;

/// One operation of a document.
struct OperationDefinition {
    name: Option<String>,
    operation: GraphqlOperation,
    items: Vec<Selection>,
}

/// An item of a selection.
enum Selection {
    Field(Field),
    /// A fragment, by its name.
    Spread(String),
    /// One that is written out where it is used.
    Inline(Vec<Selection>),
}

/// Reads a document, of which the operation of that name is wanted, or any.
pub fn read(document: &str, wanted: Option<&str>) -> Option<Graphql> {
    let mut tokens = Lexer::of(document);
    let mut operations = Vec::new();
    let mut fragments = HashMap::new();
    for _ in 0..ITEMS_MAX {
        let Some(token) = tokens.next()? else { break };
        match (token.kind, token.text) {
            (TokenKind::Mark, "{") => {
                let items = selections(&mut tokens, 0)?;
                operations.push(OperationDefinition {
                    name: None,
                    operation: GraphqlOperation::Query,
                    items,
                });
            }
            (TokenKind::Name, "fragment") => {
                let named = [tokens.next()??, tokens.next()??, tokens.next()??];
                (named.iter().all(|token| token.kind == TokenKind::Name) && named[1].text == "on")
                    .then_some(())?;
                directives(&mut tokens)?;
                tokens.mark("{")?;
                fragments.insert(named[0].text.to_owned(), selections(&mut tokens, 0)?);
            }
            (TokenKind::Name, word) => {
                let operation = GraphqlOperation::of(word)?;
                let name = tokens.take_if(|token| token.kind == TokenKind::Name)?;
                let name = name.map(|token| token.text.to_owned());
                if tokens.take_if(|token| token.is("("))?.is_some() {
                    skip(&mut tokens, ")")?;
                }
                directives(&mut tokens)?;
                tokens.mark("{")?;
                operations.push(OperationDefinition { name, operation, items: selections(&mut tokens, 0)? });
            }
            _ => return None,
        }
    }
    if tokens.next()?.is_some() {
        return None;
    }
    let selected = wanted.filter(|_| operations.len() > 1).map(str::to_owned);
    let mut meant = operations
        .into_iter()
        .filter(|operation| wanted.is_none_or(|wanted| operation.name.as_deref() == Some(wanted)));
    let first = meant.next()?;
    let only_asks = first.operation != GraphqlOperation::Mutation;
    let shared = used_more_than_once(document)?;
    let mut graphql = Graphql { operation: first.operation, fields: Vec::new(), only_asks, selected, shared };
    expand(first.items, &fragments, 0, &mut graphql.fields)?;
    for other in meant {
        // Which of them the upstream takes is not known, so the strongest counts.
        graphql.only_asks &= other.operation != GraphqlOperation::Mutation;
        if graphql.operation != GraphqlOperation::Mutation {
            graphql.operation = other.operation;
        }
        expand(other.items, &fragments, 0, &mut graphql.fields)?;
    }
    Some(graphql)
}

/// The fields that a selection comes to. One that comes by a fragment is a field like any other, but for a key: the
/// fragment may be used elsewhere too.
fn expand(
    items: impl IntoIterator<Item = impl Borrow<Selection>>,
    fragments: &HashMap<String, Vec<Selection>>,
    depth: usize,
    fields: &mut Vec<Field>,
) -> Option<()> {
    for item in items {
        if fields.len() >= ITEMS_MAX {
            return None;
        }
        match item.borrow() {
            Selection::Field(field) => fields.push(Field { by_fragment: depth > 0, ..field.clone() }),
            Selection::Inline(items) => expand(items, fragments, depth + 1, fields)?,
            Selection::Spread(name) => match fragments.get(name).filter(|_| depth < DEPTH_MAX) {
                Some(items) => expand(items, fragments, depth + 1, fields)?,
                // Nobody could carry it out.
                None => return None,
            },
        }
    }
    Some(())
}

/// Variables that stand for more than one thing, beside their definition.
fn used_more_than_once(document: &str) -> Option<Vec<String>> {
    // Only a directive puts a key into a variable.
    if !document.contains('@') {
        return Some(Vec::new());
    }
    let mut tokens = Lexer::of(document);
    let mut uses: HashMap<&str, usize> = HashMap::new();
    while let Some(token) = tokens.next()? {
        if token.is("$") {
            *uses.entry(tokens.next()??.text).or_default() += 1;
        }
    }
    Some(uses.into_iter().filter(|(_, count)| *count > 2).map(|(name, _)| name.to_owned()).collect())
}

/// The items of a selection, after its opening brace and up to its closing one.
fn selections(tokens: &mut Lexer<'_>, depth: usize) -> Option<Vec<Selection>> {
    (depth < DEPTH_MAX).then_some(())?;
    let mut items: Vec<Selection> = Vec::new();
    loop {
        let token = tokens.next()??;
        if token.is("}") {
            // An empty one is no selection. Fragments of nothing could be written to be expanded for ever.
            return (!items.is_empty()).then_some(items);
        }
        if items.len() == ITEMS_MAX {
            return None;
        }
        if token.is("...") {
            let word = tokens.take_if(|token| token.kind == TokenKind::Name)?;
            let spread = match word {
                Some(word) if word.text == "on" => {
                    tokens.next()?.filter(|token| token.kind == TokenKind::Name)?;
                    None
                }
                word => word,
            };
            directives(tokens)?;
            items.push(match spread {
                Some(name) => Selection::Spread(name.text.to_owned()),
                None => {
                    tokens.mark("{")?;
                    Selection::Inline(selections(tokens, depth + 1)?)
                }
            });
            continue;
        }
        (token.kind == TokenKind::Name).then_some(())?;
        let (mut name, answered_as) = (token, token.text.to_owned());
        if tokens.take_if(|token| token.is(":"))?.is_some() {
            name = tokens.next()?.filter(|token| token.kind == TokenKind::Name)?;
        }
        let mut directives_at = name.end();
        if tokens.take_if(|token| token.is("("))?.is_some() {
            directives_at = skip(tokens, ")")?;
        }
        let directives = directives(tokens)?;
        if tokens.take_if(|token| token.is("{"))?.is_some() {
            skip(tokens, "}")?;
        }
        let name = name.text.to_owned();
        items.push(Selection::Field(Field {
            name,
            answered_as,
            directives_at,
            directives,
            by_fragment: false,
        }));
    }
}

fn directives(tokens: &mut Lexer<'_>) -> Option<Vec<Directive>> {
    let mut all = Vec::new();
    while tokens.take_if(|token| token.is("@"))?.is_some() {
        let name = tokens.next()?.filter(|token| token.kind == TokenKind::Name)?.text.to_owned();
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
fn arguments(tokens: &mut Lexer<'_>) -> Option<Option<KeyValue>> {
    let mut key = None;
    loop {
        let name = tokens.next()??;
        if name.is(")") {
            return Some(key);
        }
        (name.kind == TokenKind::Name).then_some(())?;
        tokens.mark(":")?;
        let value = tokens.next()??;
        let read = match (value.kind, value.text) {
            (TokenKind::Mark, "$") => Some(KeyValue::Variable(tokens.next()??.text.to_owned())),
            (TokenKind::Mark, "[") => skip(tokens, "]").map(|_| None)?,
            (TokenKind::Mark, "{") => skip(tokens, "}").map(|_| None)?,
            (TokenKind::Mark, _) => return None,
            // Its escapes are those of JSON, but for one that no key needs.
            (TokenKind::Text, text) => {
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
fn skip(tokens: &mut Lexer<'_>, closing: &str) -> Option<usize> {
    let mut open = vec![closing];
    while let Some(expected) = open.last() {
        let token = tokens.next()??;
        match (token.kind, token.text) {
            (TokenKind::Mark, "{") => open.push("}"),
            (TokenKind::Mark, "(") => open.push(")"),
            (TokenKind::Mark, "[") => open.push("]"),
            (TokenKind::Mark, mark @ ("}" | ")" | "]")) => {
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
