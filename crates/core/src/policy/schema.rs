//! The JSON Schema of `semel.toml`, for editors.

use super::file::File;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use std::borrow::Cow;

/// Draft 7, as that is what TOML language servers read.
pub fn schema() -> serde_json::Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<File>();
    schema.insert("title".to_owned(), "semel policy, version 1".into());
    schema.to_value()
}

/// Stands for [`crate::class::Class`], whose words must not depend on how a schema is made.
#[derive(Debug)]
pub struct ClassWord;

impl JsonSchema for ClassWord {
    fn schema_name() -> Cow<'static, str> {
        "Class".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": crate::class::Class::ALL.map(crate::class::Class::word) })
    }
}
