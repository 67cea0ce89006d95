//! The examples that rules carry. A policy loads without them; whoever tests it reads them here.

use super::call_arguments::rooted;
use super::compile::json_of;
use super::diagnostic::{DiagnosticCode, Diagnostics, SourceText};
use super::file::{ExampleTable, Spot, TomlValue};
use super::rule::RuleOrigin;
use super::{PolicyFile, read};
use crate::class::Class;
use crate::json::Json;
use std::ops::Range;

/// One example, and the place where it stands.
#[derive(Debug, Clone)]
pub struct RuleExample<'f> {
    pub source: SourceText<'f>,
    pub span: Range<usize>,
    /// The rule that it is an example of.
    pub rule: RuleOrigin,
    pub same: Vec<ExampleCall>,
    pub differ: Vec<ExampleCall>,
    pub class: Option<Class>,
}

#[derive(Debug, Clone)]
pub struct ExampleCall {
    pub span: Range<usize>,
    pub action: String,
    /// Below their roots, as a door has them.
    pub arguments: Json,
}

/// The examples of all rules. One that says nothing is an error among `found`.
pub fn of_files<'f>(files: &'f [PolicyFile], found: &mut Diagnostics) -> Vec<RuleExample<'f>> {
    let mut examples = Vec::new();
    for PolicyFile { path, text } in files {
        let source = SourceText { path, text };
        for rule in read::read(source, found).file.rule {
            let line = source.line_of(rule.span.start);
            let origin = RuleOrigin::File { path: path.clone(), line };
            let pattern = rule.value.pattern.map_or_else(String::new, |pattern| pattern.value);
            for table in &rule.value.example {
                let read = |calls: &[Spot<TomlValue>]| -> Result<Vec<ExampleCall>, ExampleFault> {
                    calls.iter().map(|call| example_call(&pattern, &table.value, call)).collect()
                };
                match (read(&table.value.same), read(&table.value.differ)) {
                    (Ok(same), Ok(differ)) if same.len() + differ.len() > 0 => examples.push(RuleExample {
                        source,
                        span: table.span.clone(),
                        rule: origin.clone(),
                        same,
                        differ,
                        class: table.value.class,
                    }),
                    (Ok(_), Ok(_)) => {
                        let help = "such as same = [{ id = 1 }]";
                        found.error(
                            source,
                            table.span.clone(),
                            DiagnosticCode::WrongExample,
                            "this example has no calls",
                            help,
                        );
                    }
                    (Err(fault), _) | (_, Err(fault)) => {
                        found.error(source, fault.0, DiagnosticCode::WrongExample, fault.1, fault.2);
                    }
                }
            }
        }
    }
    examples
}

/// Where it stands, what is wrong and what to write.
struct ExampleFault(Range<usize>, &'static str, &'static str);

fn example_call(
    pattern: &str,
    table: &ExampleTable,
    call: &Spot<TomlValue>,
) -> Result<ExampleCall, ExampleFault> {
    let fault = |what, help| ExampleFault(call.span.clone(), what, help);
    let value = json_of(&call.value.0)
        .ok_or_else(|| fault("this value has no JSON form", "inf and nan cannot occur in arguments"))?;
    let program = value.as_array().and_then(|argv| argv.first()?.as_str()?.rsplit('/').next());
    let action = match (&table.action, program) {
        (Some(action), _) => action.value.clone(),
        (None, Some(program)) if pattern.starts_with("cli:") => format!("cli:{program}"),
        (None, _) if pattern.starts_with("cli:") => {
            return Err(fault("a command is a list of its words", "such as [\"git\", \"push\"]"));
        }
        (None, _) if pattern.contains(['*', '?', '[', '{', '\\']) => {
            let help = "add its full name, such as action = \"mcp:billing/charge_card\"";
            return Err(fault("`match` does not name one action", help));
        }
        (None, _) => pattern.to_owned(),
    };
    let arguments = rooted(&action, value);
    Ok(ExampleCall { span: call.span.clone(), action, arguments })
}
