//! The operation that a document asks for, and the place of a key in it.

use crate::wire::members::quoted;
use semel_core::json::{Json, Object};
use semel_core::policy::graphql::GraphqlRequest;
use std::collections::BTreeSet;
use std::ops::Range;

/// Members that rules see beside it.
pub const DESCRIBED: [&str; 3] = ["operation", "fields", "selected"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphqlOperation {
    Query,
    Mutation,
    Subscription,
}

impl GraphqlOperation {
    pub fn of(word: &str) -> Option<GraphqlOperation> {
        match word {
            "query" => Some(GraphqlOperation::Query),
            "mutation" => Some(GraphqlOperation::Mutation),
            "subscription" => Some(GraphqlOperation::Subscription),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            GraphqlOperation::Query => "query",
            GraphqlOperation::Mutation => "mutation",
            GraphqlOperation::Subscription => "subscription",
        }
    }
}

/// The operation of a request's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graphql {
    pub operation: GraphqlOperation,
    pub fields: Vec<Field>,
    /// No part of it is a mutation.
    pub only_asks: bool,
    /// The operation that was asked for by its name, where there are others.
    pub selected: Option<String>,
    /// Variables that stand for more than one thing: none of them can be a key's alone.
    pub shared: Vec<String>,
}

/// A field that an operation begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// The member of the answer: fields that share one are one.
    pub answered_as: String,
    /// Where a directive would go.
    pub directives_at: usize,
    pub directives: Vec<Directive>,
    pub by_fragment: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    pub name: String,
    pub key: Option<KeyValue>,
}

/// The `key` of a directive, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyValue {
    Text { value: String, at: Range<usize> },
    Variable(String),
}

/// The change that puts a key where a directive has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyEdit {
    Document(String),
    Variable(String),
}

/// A document, or what stands beside it, that no rule could be held against: what it does is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableDocument;

impl Graphql {
    /// Tells rules what the document does, beside its text.
    pub fn describe(&self, body: &mut Json) {
        if let Json::Object(members) = body {
            let fields = self.fields.iter().map(|field| Json::str(&field.name)).collect();
            let [operation, all, selected] = DESCRIBED;
            members.insert(operation, Json::str(self.operation.word()));
            members.insert(all, Json::Array(fields));
            if let Some(name) = &self.selected {
                members.insert(selected, Json::str(name));
            }
        }
    }

    /// The question by which its answer is read.
    pub fn asked(&self) -> GraphqlRequest {
        let answered: BTreeSet<&str> = self.fields.iter().map(|field| field.answered_as.as_str()).collect();
        GraphqlRequest::Document { only_asks: self.only_asks, fields: answered.len() }
    }

    /// The one field that a key can be for: two effects need two keys.
    fn field(&self) -> Option<&Field> {
        match (self.operation, self.fields.as_slice()) {
            (GraphqlOperation::Mutation, [field]) if !field.by_fragment => Some(field),
            _ => None,
        }
    }

    /// Whether a key can be put where a directive has it, given the request's variables.
    pub fn takes_key(&self, directive: &str, variables: Option<&Json>) -> bool {
        match self.field().map(|field| field.key(directive)) {
            None => false,
            Some(Some(KeyValue::Variable(name))) => {
                !self.shared.contains(name) && matches!(variables, None | Some(Json::Object(_)))
            }
            Some(_) => true,
        }
    }

    /// The key that the client wrote itself.
    pub fn key(&self, directive: &str, variables: Option<&Object>) -> Option<String> {
        match self.field()?.key(directive)? {
            KeyValue::Text { value, .. } => Some(value.clone()),
            KeyValue::Variable(name) => variables?.get(name)?.as_str().map(str::to_owned),
        }
    }

    /// How the document, or a variable of it, has to read with this key.
    pub fn with_key(&self, document: &str, directive: &str, key: &str) -> Option<KeyEdit> {
        let field = self.field()?;
        let (at, text) = match field.key(directive) {
            Some(KeyValue::Variable(name)) => return Some(KeyEdit::Variable(name.clone())),
            Some(KeyValue::Text { at, .. }) => (at.clone(), quoted(key)),
            None => {
                let at = field.directives_at;
                (at..at, format!(" @{directive}(key: {})", quoted(key)))
            }
        };
        let mut edited = document.to_owned();
        edited.replace_range(at, &text);
        Some(KeyEdit::Document(edited))
    }
}

impl Field {
    fn key(&self, directive: &str) -> Option<&KeyValue> {
        self.directives.iter().find(|known| known.name == directive)?.key.as_ref()
    }
}
