//! CEL expressions: compiled once at load, evaluated without ever turning a failure into an answer.

pub use super::template::Template;

use super::cost::{EvaluationCost, Size, children};
use crate::json::{Json, Number};
use cel::common::ast::{Expr, IdedExpr};
use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, Program, Value};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::{fmt, thread};

/// Nobody can review a longer condition; it also bounds what the recursive parser is fed.
pub const SOURCE_CHARS_MAX: usize = 2_000;

/// Evaluation recurses over the tree on a worker's 2 MiB stack; a chain of this depth fits with room to spare.
const DEPTH_MAX: usize = 48;

/// The parser recurses deeply, in debug builds beyond the usual 8 MiB; the pages are only touched when needed.
const COMPILE_STACK_BYTES: usize = 64 << 20;

/// Values are copied into the engine; a larger document is a truncated answer in the making, not a condition.
const NODES_MAX: usize = 200_000;

#[derive(Clone)]
pub struct Expression(Arc<Compiled>);

struct Compiled {
    source: String,
    program: Program,
    cost: EvaluationCost,
    variables: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("the expression is empty")]
    Empty,
    #[error("an expression has at most {SOURCE_CHARS_MAX} characters")]
    TooLong,
    #[error("the expression nests too deeply (at most {DEPTH_MAX} levels)")]
    TooDeep,
    #[error("{message}")]
    Syntax {
        /// Line and column inside the expression, from 1.
        at: Option<(usize, usize)>,
        message: String,
    },
    #[error("the expression compiler did not survive this expression")]
    Engine,
}

/// Never read as "false": a condition that cannot be evaluated is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    #[error("`{expression}` failed: {message}")]
    Failed { expression: String, message: String },
    #[error("`{expression}` gave {got}, not true or false")]
    NotBool { expression: String, got: &'static str },
    #[error("`{expression}` gave a value that JSON cannot hold")]
    NotJson { expression: String },
    #[error("`{expression}` was not evaluated: its values are too large")]
    TooLarge { expression: String },
}

impl Expression {
    pub fn compile(source: &str) -> Result<Expression, CompileError> {
        if source.trim().is_empty() {
            return Err(CompileError::Empty);
        }
        if source.chars().count() > SOURCE_CHARS_MAX {
            return Err(CompileError::TooLong);
        }
        // A tree that turns out too deep must also be dropped on the large stack, so all of it happens there.
        thread::scope(|scope| {
            let compiler = thread::Builder::new()
                .stack_size(COMPILE_STACK_BYTES)
                .spawn_scoped(scope, || compile_here(source))
                .map_err(|_| CompileError::Engine)?;
            compiler.join().unwrap_or(Err(CompileError::Engine))
        })
    }

    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The free variables, for checking against what will be there.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.variables.iter().map(String::as_str)
    }

    pub fn eval(&self, vars: &[(&str, &Json)]) -> Result<Json, EvalError> {
        let value = self.run(vars)?;
        let json = to_json(&value).ok_or_else(|| EvalError::NotJson { expression: self.excerpt() })?;
        Ok(json)
    }

    pub fn eval_bool(&self, vars: &[(&str, &Json)]) -> Result<bool, EvalError> {
        match self.run(vars)? {
            Value::Bool(answer) => Ok(answer),
            other => Err(EvalError::NotBool { expression: self.excerpt(), got: kind(&other) }),
        }
    }

    fn run(&self, vars: &[(&str, &Json)]) -> Result<Value, EvalError> {
        let mut size = Size::default();
        for (_, json) in vars {
            size.add(json);
        }
        if size.nodes > NODES_MAX || self.0.cost.exceeds(&size) {
            return Err(EvalError::TooLarge { expression: self.excerpt() });
        }
        // The engine is a library with panics of its own; one of them must cost an answer, not the process.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::with_env(environment());
            for (name, json) in vars {
                context.add_variable_from_value(*name, to_cel(json));
            }
            self.0.program.execute(&context)
        }));
        let message = match result {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => without_values(&error),
            Err(_) => "the expression engine failed".to_owned(),
        };
        Err(EvalError::Failed { expression: self.excerpt(), message: clipped(&message, 300) })
    }

    fn excerpt(&self) -> String {
        clipped(&self.0.source, 120)
    }
}

/// The fault, without the values that caused it: they are the caller's or the upstream's, and the words
/// are written down.
fn without_values(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(_)
        | ExecutionError::NoSuchOverload(_)
        | ExecutionError::UndeclaredReference(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::MissingArgumentOrTarget => error.to_string(),
        ExecutionError::FunctionError { function, .. } => {
            format!("`{function}` cannot be done with its value")
        }
        ExecutionError::NotSupportedAsMethod { method, .. } => {
            format!("`{method}` cannot be done with its value")
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".into(),
        ExecutionError::Overflow(..) => "a number became too large".into(),
        ExecutionError::IndexOutOfBounds(_) => "an index is out of bounds".into(),
        _ => "a value is of a type that this cannot be done with".into(),
    }
}

fn clipped(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Built on first use: a policy without expressions never starts the engine.
fn environment() -> Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    Arc::clone(ENVIRONMENT.get_or_init(|| Arc::new(Env::stdlib())))
}

fn compile_here(source: &str) -> Result<Expression, CompileError> {
    let program = environment().compile(source).map_err(|errors| {
        let first = errors.errors.first();
        let at = first.and_then(|error| {
            let line = usize::try_from(error.pos.0).ok().filter(|line| *line > 0)?;
            let column = usize::try_from(error.pos.1).ok().filter(|column| *column > 0)?;
            Some((line, column))
        });
        let message = first.map_or_else(|| "syntax error".to_owned(), |error| plain(&error.msg));
        CompileError::Syntax { at, message }
    })?;
    let mut survey = TreeSurvey::default();
    survey.visit(program.expression(), &mut Vec::new(), 1);
    if survey.depth > DEPTH_MAX {
        return Err(CompileError::TooDeep);
    }
    let cost = EvaluationCost::of(program.expression(), false);
    Ok(Expression(Arc::new(Compiled {
        source: source.to_owned(),
        program,
        cost,
        variables: survey.variables,
    })))
}

/// The parser lists every token that it could have taken; the first part is what a person can use.
fn plain(message: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let end = message.find(" expecting ").unwrap_or(message.len());
    clipped(message[..end].trim(), 200)
}

/// The needs of the compiled tree: depth for the stack, loops for the cost, free variables for typing errors.
#[derive(Default)]
struct TreeSurvey {
    depth: usize,
    variables: BTreeSet<String>,
}

impl TreeSurvey {
    fn visit<'a>(&mut self, node: &'a IdedExpr, bound: &mut Vec<&'a str>, depth: usize) {
        self.depth = self.depth.max(depth);
        match &node.expr {
            Expr::Ident(name) => {
                if !bound.contains(&name.as_str()) && !TYPE_NAMES.contains(&name.as_str()) {
                    self.variables.insert(name.trim_start_matches('.').to_owned());
                }
            }
            Expr::Comprehension(comprehension) => {
                self.visit(&comprehension.iter_range, bound, depth + 1);
                let outer = bound.len();
                bound.push(&comprehension.iter_var);
                bound.extend(comprehension.iter_var2.as_deref());
                bound.push(&comprehension.accu_var);
                for part in [
                    &comprehension.accu_init,
                    &comprehension.loop_cond,
                    &comprehension.loop_step,
                    &comprehension.result,
                ] {
                    self.visit(part, bound, depth + 1);
                }
                bound.truncate(outer);
            }
            _ => {
                for child in children(node) {
                    self.visit(child, bound, depth + 1);
                }
            }
        }
    }
}

const TYPE_NAMES: [&str; 9] =
    ["int", "uint", "double", "string", "bytes", "bool", "list", "map", "null_type"];

/// Integers become CEL `int` whenever they fit, as the engine's own conversion makes them unsigned, and then
/// `args.amount + 1` has no overload.
fn to_cel(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => number_to_cel(number),
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Json::Object(members) => {
            let map: HashMap<Key, Value> = members
                .iter()
                .map(|(name, value)| (Key::String(Arc::new(name.to_owned())), to_cel(value)))
                .collect();
            Value::Map(Map { map: Arc::new(map) })
        }
    }
}

fn number_to_cel(number: &Number) -> Value {
    if let Some(value) = number.as_i64() {
        Value::Int(value)
    } else if let Some(value) = number.as_u64() {
        Value::UInt(value)
    } else if let Some(value) = number.as_exact_f64() {
        Value::Float(value)
    } else {
        // As a double two different long identifiers could compare equal; as text they cannot.
        Value::String(Arc::new(number.text().to_owned()))
    }
}

fn to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::Number(Number::from_i64(*value)),
        Value::UInt(value) => Json::Number(Number::from_u64(*value)),
        Value::Float(value) => Json::Number(Number::from_f64(*value)?),
        Value::String(text) => Json::String(text.as_str().to_owned()),
        Value::List(items) => Json::Array(items.iter().map(to_json).collect::<Option<_>>()?),
        Value::Map(map) => {
            let members = map.map.iter().map(|(key, value)| match key {
                Key::String(name) => Some((name.as_str().to_owned(), to_json(value)?)),
                _ => None,
            });
            Json::Object(members.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::List(_) => "a list",
        Value::Map(_) => "an object",
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number",
        Value::String(_) => "a string",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
        _ => "something else",
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.0.source)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.0.source == other.0.source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        crate::json::parse(text).expect(text)
    }

    fn bool_of(source: &str, args: &str) -> Result<bool, EvalError> {
        Expression::compile(source).expect(source).eval_bool(&[("args", &json(args))])
    }

    #[test]
    fn integers_of_json_take_part_in_arithmetic() {
        let sum = Expression::compile("args.amount + 1").unwrap();
        assert_eq!(sum.eval(&[("args", &json(r#"{"amount": 41}"#))]), Ok(json("42")));
        assert_eq!(bool_of("args.amount > 100 && args.amount < 9000000000", r#"{"amount": 500}"#), Ok(true));
        assert_eq!(bool_of("args.price * 2.0 == 3.0", r#"{"price": 1.5}"#), Ok(true));
    }

    #[test]
    fn long_integers_compare_exactly() {
        let args = r#"{"a": 1234567890123456789012345, "b": 1234567890123456789012346}"#;
        assert_eq!(bool_of("args.a == args.b", args), Ok(false));
        assert_eq!(bool_of("args.a == args.a", args), Ok(true));
    }

    #[test]
    fn a_list_answers_with_its_members() {
        let resp = json(r#"{"charges": [{"id": "a", "invoice": 1}, {"id": "b", "invoice": 2}]}"#);
        let args = json(r#"{"invoice": 2}"#);
        let vars = [("resp", &resp), ("args", &args)];
        let found = Expression::compile("resp.charges.exists(c, c.invoice == args.invoice)").unwrap();
        assert_eq!(found.eval_bool(&vars), Ok(true));
        let reply = Expression::compile("resp.charges.filter(c, c.invoice == args.invoice)[0]").unwrap();
        assert_eq!(reply.eval(&vars), Ok(json(r#"{"id": "b", "invoice": 2}"#)));
    }

    #[test]
    fn a_failure_is_never_false() {
        assert!(matches!(bool_of("args.missing == 1", "{}"), Err(EvalError::Failed { .. })));
        assert!(matches!(bool_of("other == 1", "{}"), Err(EvalError::Failed { .. })));
        assert!(matches!(bool_of("args.list[9] == 1", r#"{"list": []}"#), Err(EvalError::Failed { .. })));
        assert_eq!(bool_of("has(args.missing)", "{}"), Ok(false));
        assert_eq!(
            bool_of("1 + 1", "{}"),
            Err(EvalError::NotBool { expression: "1 + 1".to_owned(), got: "a number" })
        );
    }

    #[test]
    fn free_variables_are_known_and_bound_ones_are_not_free() {
        let expression =
            Expression::compile("resp.items.exists(c, c.id == args.id && type(c.n) == int) || has(reply.x)");
        let names: Vec<String> = expression.unwrap().variables().map(str::to_owned).collect();
        assert_eq!(names, ["args", "reply", "resp"]);
    }

    #[test]
    fn a_syntax_error_has_a_place() {
        let error = Expression::compile("args.a == == 2").unwrap_err();
        assert_eq!(
            error,
            CompileError::Syntax { at: Some((1, 11)), message: "extraneous input '=='".to_owned() }
        );
    }

    #[test]
    fn hostile_shapes_are_refused_or_survive_on_a_small_stack() {
        assert_eq!(Expression::compile("").unwrap_err(), CompileError::Empty);
        assert_eq!(Expression::compile(&"1".repeat(2_001)).unwrap_err(), CompileError::TooLong);
        let sources = [
            "(".repeat(1_000),
            format!("{}1{}", "(".repeat(900), ")".repeat(900)),
            format!("{}1{}", "[".repeat(900), "]".repeat(900)),
            format!("{}true", "!".repeat(1_900)),
            format!("{}1", "-".repeat(1_900)),
            vec!["1"; 990].join("+"),
            vec!["true"; 330].join("||"),
            format!("args{}", ".a".repeat(900)),
            format!("{}1", "true?1:".repeat(280)),
            format!("args{}", "[0]".repeat(600)),
        ];
        let args = json("{}");
        for source in sources {
            match Expression::compile(&source) {
                Ok(expression) => {
                    let _ = expression.eval(&[("args", &args)]);
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn nested_loops_over_long_lists_are_refused() {
        let list = format!("{{\"l\": [{}]}}", vec!["1"; 800].join(","));
        assert!(matches!(
            bool_of("args.l.exists(a, args.l.exists(b, a + b == 0))", &list),
            Err(EvalError::TooLarge { .. })
        ));
        assert_eq!(bool_of("args.l.all(a, a == 1) && args.l.exists(b, b == 1)", &list), Ok(true));
    }
}
