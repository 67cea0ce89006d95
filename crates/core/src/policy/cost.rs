//! The cost of an expression. CEL itself has no limit, so the cost is bounded before evaluation starts.

use crate::json::Json;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators};

/// CEL has no cost limit, so nested loops over long lists are refused before they start: this many steps take a
/// fraction of a second.
const LOOP_STEPS_MAX: u128 = 500_000;

/// The same for steps that may each look through all the values (comparing lists, searching texts), in parts looked at;
/// and for steps that may each copy them, in bytes.
const LOOKED_AT_MAX: u128 = 100_000_000;
const COPIED_BYTES_MAX: u128 = 64 << 20;

/// The cost allowed to an evaluation, beside the size of its values.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvaluationCost {
    /// How deep comprehensions (`exists`, `filter`, …) and searches in lists (`in`) nest.
    loops: u32,
    /// The longest list that the expression itself has.
    list: usize,
    /// A step of a loop may look through the values.
    looks: bool,
    /// A step of a loop may copy them.
    copies: bool,
}

/// Methods that look through a text or a list.
const LOOKING: [&str; 5] = ["contains", "startsWith", "endsWith", "matches", "size"];

impl EvaluationCost {
    pub fn of(node: &IdedExpr, in_loop: bool) -> EvaluationCost {
        if let Expr::Comprehension(comprehension) = &node.expr {
            let range = EvaluationCost::of(&comprehension.iter_range, in_loop);
            let [condition, step] = [&comprehension.loop_cond, &comprehension.loop_step]
                .map(|part| EvaluationCost::of(part, true));
            let inside = condition.and(step);
            return EvaluationCost { loops: range.loops.max(1 + inside.loops), ..range.and(inside) };
        }
        let parts = children(node).into_iter().map(|child| EvaluationCost::of(child, in_loop));
        let mut cost = parts.fold(EvaluationCost::default(), EvaluationCost::and);
        match &node.expr {
            Expr::List(list) => cost.list = cost.list.max(list.elements.len()),
            Expr::Call(call) => {
                let any = |is: fn(&IdedExpr) -> bool| call.args.iter().any(is);
                match call.func_name.as_str() {
                    // In a list that is written out it takes no longer than the expression.
                    operators::IN if !call.args.last().is_some_and(is_list) => {
                        cost.loops = cost.loops.max(1);
                    }
                    operators::EQUALS | operators::NOT_EQUALS => cost.looks |= in_loop && !any(is_literal),
                    // The accumulator of a comprehension is the engine's own matter.
                    operators::ADD => cost.copies |= in_loop && !any(is_number) && !any(is_result),
                    name => cost.looks |= in_loop && LOOKING.contains(&name),
                }
            }
            _ => {}
        }
        cost
    }

    fn and(self, other: EvaluationCost) -> EvaluationCost {
        EvaluationCost {
            loops: self.loops.max(other.loops),
            list: self.list.max(other.list),
            looks: self.looks || other.looks,
            copies: self.copies || other.copies,
        }
    }

    pub fn exceeds(&self, size: &Size) -> bool {
        let steps = (size.longest.max(self.list) as u128).checked_pow(self.loops).unwrap_or(u128::MAX);
        let times = |each: usize| steps.saturating_mul(each as u128);
        steps > LOOP_STEPS_MAX
            || self.looks && times(size.nodes + size.bytes / 64) > LOOKED_AT_MAX
            || self.copies && times(size.nodes + size.bytes) > COPIED_BYTES_MAX
    }
}

fn is_list(node: &IdedExpr) -> bool {
    matches!(node.expr, Expr::List(_))
}

fn is_literal(node: &IdedExpr) -> bool {
    matches!(node.expr, Expr::Literal(_))
}

fn is_number(node: &IdedExpr) -> bool {
    matches!(
        &node.expr,
        Expr::Literal(LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_))
    )
}

/// The variable in which a comprehension gathers.
fn is_result(node: &IdedExpr) -> bool {
    matches!(&node.expr, Expr::Ident(name) if name.starts_with('@'))
}

/// The parts of an expression that is no comprehension.
pub fn children(node: &IdedExpr) -> Vec<&IdedExpr> {
    fn entry(entry: &EntryExpr) -> Vec<&IdedExpr> {
        match entry {
            EntryExpr::StructField(field) => vec![&field.value],
            EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        }
    }
    match &node.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Comprehension(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|item| entry(&item.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(structure) => structure.entries.iter().flat_map(|item| entry(&item.expr)).collect(),
    }
}

/// How large values are.
#[derive(Debug, Default)]
pub struct Size {
    pub nodes: usize,
    longest: usize,
    /// Of all texts together.
    bytes: usize,
}

impl Size {
    pub fn add(&mut self, json: &Json) {
        self.nodes += 1;
        match json {
            Json::Array(items) => {
                self.longest = self.longest.max(items.len());
                items.iter().for_each(|item| self.add(item));
            }
            Json::Object(members) => {
                self.longest = self.longest.max(members.len());
                members.iter().for_each(|(_, item)| self.add(item));
            }
            Json::String(text) => self.bytes += text.len(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::json::parse;
    use crate::policy::expression::{EvalError, Expression};

    #[test]
    fn what_looks_through_all_or_copies_all_at_each_step_is_refused_where_that_is_much() {
        let list = |length: usize, each: &str| format!("[{}]", vec![each; length].join(","));
        let long = parse(&format!(
            r#"{{"tags": {}, "allowed": {}, "text": "{}"}}"#,
            list(20_000, "\"t\""),
            list(20_000, "\"a\""),
            "x".repeat(100_000)
        ))
        .unwrap();
        for source in [
            "body.tags.all(t, t in body.allowed)",
            "body.tags.all(t, body.tags == body.allowed)",
            "body.tags.map(t, body.text + body.text).size() > 0",
            "body.tags.exists(t, body.text.contains(t))",
            "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, body.tags.all(c, c == body.text)))",
        ] {
            let expression = Expression::compile(source).unwrap();
            let result = expression.eval_bool(&[("body", &long)]);
            assert!(matches!(result, Err(EvalError::TooLarge { .. })), "{source}: {result:?}");
        }
        // A page of a hundred large items is an ordinary answer.
        let item = format!(r#"{{"id": "i", "n": 1, "more": {}}}"#, list(50, "\"a text of some length\""));
        let page =
            parse(&format!(r#"{{"items": {}, "id": "j", "ids": ["i", "j"]}}"#, list(100, &item))).unwrap();
        for source in [
            "body.items.exists(i, i.id == body.id)",
            "body.items.all(i, i.id in body.ids)",
            "body.items.filter(i, i.id == 'i').size() == 100",
            "body.items.all(i, i.n + 1 == 2)",
            "body.items.exists(i, i.id.contains(body.id))",
            "body.id in ['i', 'j']",
        ] {
            let expression = Expression::compile(source).unwrap();
            assert!(expression.eval_bool(&[("body", &page)]).is_ok(), "{source}");
        }
    }
}
