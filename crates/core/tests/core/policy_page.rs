//! `docs/policy.md` says what the schema says, of every key that `semel.toml` can have.

use crate::page;
use semel_core::policy::schema::schema;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Where a table stands in the file, and its definition in the schema.
const TABLES: [(&str, &str); 18] = [
    ("The file", ""),
    ("[defaults]", "Defaults"),
    ("[[rule]]", "RuleTable"),
    ("[rule.probe]", "ProbeTable"),
    ("[rule.confirm]", "ConfirmTable"),
    ("[rule.undo]", "CallTable"),
    ("[rule.inject]", "InjectTable"),
    ("[rule.dry_run]", "DryRunTable"),
    ("[[rule.example]]", "ExampleTable"),
    ("[upstream.NAME]", "UpstreamTable"),
    ("[upstream.NAME.keys]", "KeysTable"),
    ("[mcp.NAME]", "McpTable"),
    ("[serve]", "ServeTable"),
    ("[serve.tls]", "TlsTable"),
    ("[notify]", "NotifyTable"),
    ("[prices.\"MODEL\"]", "PriceTable"),
    ("[reconcile.NAME]", "ReconcileTable"),
    ("[retention]", "RetentionTable"),
];

fn description<'a>(of: &'a Value, what: &str) -> &'a str {
    let text = of["description"].as_str();
    text.unwrap_or_else(|| panic!("{what} has no description"))
}

/// The words that a definition allows, each with what it means.
fn words(definition: &Value) -> Vec<(String, Option<String>)> {
    let alternatives = definition["oneOf"].as_array().map_or(std::slice::from_ref(definition), Vec::as_slice);
    let texts = |one: &Value| -> Vec<(String, Option<String>)> {
        let meaning = one["description"].as_str().map(str::to_owned);
        match (&one["const"], &one["enum"]) {
            (Value::String(word), _) => vec![(word.clone(), meaning)],
            (_, Value::Array(words)) => {
                words.iter().filter_map(|word| Some((word.as_str()?.to_owned(), None))).collect()
            }
            _ => Vec::new(),
        }
    };
    alternatives.iter().flat_map(texts).collect()
}

struct Schema(Value);

impl Schema {
    fn definition(&self, name: &str) -> &Value {
        if name.is_empty() { &self.0 } else { &self.0["definitions"][name] }
    }

    fn definitions(&self) -> &Map<String, Value> {
        self.0["definitions"].as_object().expect("the schema has definitions")
    }

    /// The key whose value is one of a definition's words.
    fn key_of(&self, definition: &str) -> String {
        let reference = format!("#/definitions/{definition}");
        let names = |property: &Value| property.to_string().contains(&format!("\"{reference}\""));
        let tables = [&self.0].into_iter().chain(self.definitions().values());
        let mut keys = tables.filter_map(|table| table["properties"].as_object()).flatten();
        let key = keys.find(|(_, property)| names(property)).map(|(key, _)| key.clone());
        key.unwrap_or_else(|| panic!("no key takes {definition}"))
    }

    /// The values that a key takes.
    fn value(&self, property: &Value) -> String {
        let alternatives = property["anyOf"].as_array().or(property["allOf"].as_array());
        if let Some(alternatives) = alternatives {
            let told = alternatives.iter().filter(|one| one["type"] != "null").map(|one| self.value(one));
            let mut told: Vec<String> = told.collect();
            told.dedup();
            return told.join(" or ");
        }
        if let Some(name) = property["$ref"].as_str() {
            let name = name.rsplit('/').next().expect("a reference has an end");
            let definition = self.definition(name);
            let words = words(definition);
            return match words.is_empty() {
                false => words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", "),
                true => self.value(definition),
            };
        }
        let is = |kind: &str| match &property["type"] {
            Value::String(one) => one == kind,
            Value::Array(some) => some.iter().any(|one| one == kind),
            _ => false,
        };
        match property {
            Value::Bool(true) => "anything".into(),
            _ if is("string") => "text".into(),
            _ if is("integer") || is("number") => "number".into(),
            _ if is("boolean") => "boolean".into(),
            _ if is("array") && !words(&property["items"]).is_empty() => {
                let words = words(&property["items"]);
                format!(
                    "list of {}",
                    words.iter().map(|(w, _)| format!("`{w}`")).collect::<Vec<_>>().join(", ")
                )
            }
            _ if is("array") => match self.value(&property["items"]).as_str() {
                "table" => "tables".into(),
                _ => "list".into(),
            },
            _ if is("object") => "table".into(),
            _ => panic!("what is {property}?"),
        }
    }

    fn rows(&self, name: &str) -> Vec<Row> {
        let properties = self.definition(name)["properties"].as_object().expect("a table has keys");
        let row = |(key, property): (&String, &Value)| Row {
            key: key.clone(),
            value: self.value(property),
            meaning: description(property, &format!("{name}.{key}")).replace('\n', " "),
        };
        properties.iter().map(row).collect()
    }
}

/// One key of a table.
struct Row {
    key: String,
    value: String,
    meaning: String,
}

impl Row {
    /// Whether an earlier row says the same, or adds the value that holds otherwise.
    fn repeats(&self, earlier: &Row) -> bool {
        let alike = (&self.key, &self.value) == (&earlier.key, &earlier.value);
        let more = earlier.meaning.strip_prefix(self.meaning.trim_end_matches('.'));
        alike && more.is_some_and(|more| more == "." || more.contains("unless given"))
    }

    /// Whether its value is a table with a section of its own.
    fn has_section(&self) -> bool {
        let names = |place: &str| place.trim_matches(['[', ']']).split('.').any(|part| part == self.key);
        self.value.starts_with("table") && TABLES.iter().any(|(place, _)| names(place))
    }
}

/// A table without the rows of earlier ones and without those that have a section; a line names each kind.
fn table(rows: Vec<Row>, earlier: &mut Vec<(&'static str, Row)>, place: &'static str) -> String {
    let (mut own, mut repeated) = (String::new(), BTreeMap::<&str, Vec<String>>::new());
    let (sections, rows): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(Row::has_section);
    for row in rows {
        match earlier.iter().find(|(_, known)| row.repeats(known)) {
            Some((place, _)) => repeated.entry(place).or_default().push(format!("`{}`", row.key)),
            None => {
                own.push_str(&format!("| `{}` | {} | {} |\n", row.key, row.value, row.meaning));
                earlier.push((place, row));
            }
        }
    }
    let named =
        repeated.into_iter().map(|(place, keys)| format!("\nAs in `{place}`: {}.\n", keys.join(", ")));
    let sections: Vec<String> = sections.iter().map(|row| format!("`{}`", row.key)).collect();
    let below = format!("\nTables below: {}.\n", sections.join(", "));
    let below = if sections.is_empty() { "" } else { &below };
    format!("| key | value | |\n|---|---|---|\n{own}{}{below}", named.collect::<String>())
}

/// Each group of words with their meanings, once.
fn glossary(schema: &Schema) -> String {
    let explained = |(name, definition): (&String, &Value)| {
        let words = words(definition).into_iter();
        let lines: Vec<String> =
            words.filter_map(|(word, meaning)| Some(format!("`{word}` {}", meaning?))).collect();
        (!lines.is_empty()).then(|| format!("- **{}**: {}\n", schema.key_of(name), lines.join(" ")))
    };
    schema.definitions().iter().filter_map(explained).collect()
}

#[test]
fn the_page_says_what_the_schema_says() {
    let schema = Schema(schema());
    let mut earlier = Vec::new();
    let mut section = |(place, name): (&'static str, &str)| {
        let title = if name.is_empty() { place.to_owned() } else { format!("`{place}`") };
        let about = description(schema.definition(name), name).replace('\n', " ");
        format!("## {title}\n\n{about}\n\n{}\n", table(schema.rows(name), &mut earlier, place))
    };
    let tables: String = TABLES.into_iter().map(&mut section).collect();
    page::check("policy.md", &format!("{tables}## Words\n\n{}", glossary(&schema)));
}

#[test]
fn no_table_is_forgotten() {
    let schema = Schema(schema());
    let with_keys = |(name, one): (&String, &Value)| one["properties"].is_object().then(|| name.clone());
    let known: BTreeSet<String> = TABLES.iter().map(|(_, name)| (*name).to_owned()).collect();
    let found: BTreeSet<String> = schema.definitions().iter().filter_map(with_keys).collect();
    assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
}
