//! The JSON Schema of `semel.toml`, for editors.

use super::file::File;
use schemars::generate::SchemaSettings;

/// Draft 7, as that is what TOML language servers read.
pub fn schema() -> serde_json::Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<File>();
    schema.insert("title".to_owned(), "semel policy, version 1".into());
    schema.to_value()
}
