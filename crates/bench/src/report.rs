//! The table: what was measured, against its goal and its aim.

use serde_json::{Value, json};

/// One measured figure.
#[derive(Debug, Clone)]
pub struct ReportLine {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    pub goal: Option<Goal>,
    /// The figures that the value was made of.
    pub made_of: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Goal {
    pub better: Better,
    /// Missing it holds a release up.
    pub must: f64,
    /// A direction to go in.
    pub aim: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Less,
    More,
}

/// A line with what is known about the run that gave it.
#[derive(Debug, Clone)]
pub struct Reported {
    pub bench: &'static str,
    pub line: ReportLine,
    pub others: Option<f64>,
    /// The values of all repetitions, the reported one among them.
    pub values: Vec<f64>,
}

impl ReportLine {
    /// A figure without a goal, for information.
    pub fn plain(
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        made_of: impl Into<String>,
    ) -> ReportLine {
        ReportLine { what: what.into(), value, unit, goal: None, made_of: made_of.into() }
    }

    pub fn at_most(self, must: f64, aim: impl Into<Option<f64>>) -> ReportLine {
        ReportLine { goal: Some(Goal { better: Better::Less, must, aim: aim.into() }), ..self }
    }

    pub fn at_least(self, must: f64, aim: impl Into<Option<f64>>) -> ReportLine {
        ReportLine { goal: Some(Goal { better: Better::More, must, aim: aim.into() }), ..self }
    }

    pub fn misses_goal(&self) -> bool {
        self.goal.is_some_and(|goal| !goal.better.holds(self.value, goal.must))
    }

    fn verdict(&self) -> &'static str {
        let Some(goal) = self.goal else { return "" };
        match goal.aim {
            Some(aim) if goal.better.holds(self.value, aim) => "aim",
            _ if goal.better.holds(self.value, goal.must) => "goal",
            _ => "MISSED",
        }
    }
}

impl Better {
    /// What could not be measured holds no goal.
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Better::Less => value <= limit,
            Better::More => value >= limit,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Better::Less => "<=",
            Better::More => ">=",
        }
    }
}

pub fn print(lines: &[Reported]) {
    let rows: Vec<[String; 8]> = lines.iter().map(row).collect();
    let head = ["bench", "what", "value", "goal", "aim", "", "others", "made of"].map(str::to_owned);
    let width = |column: usize| {
        let all = rows.iter().chain([&head]);
        all.map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..7).map(width).collect();
    for row in [&head].into_iter().chain(&rows) {
        let mut text = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        println!("{}{}", text, row[7]);
    }
}

fn row(reported: &Reported) -> [String; 8] {
    let line = &reported.line;
    let limit =
        |value: f64| line.goal.map_or(String::new(), |goal| format!("{} {value}", goal.better.sign()));
    [
        reported.bench.to_owned(),
        line.what.clone(),
        format!("{}{}", figure(line.value), line.unit),
        line.goal.map_or(String::new(), |goal| limit(goal.must)),
        line.goal.and_then(|goal| goal.aim).map_or(String::new(), limit),
        line.verdict().to_owned(),
        reported.others.map_or("?".to_owned(), |share| format!("{share:.2}")),
        line.made_of.clone(),
    ]
}

pub fn json(lines: &[Reported]) -> Value {
    let line = |reported: &Reported| {
        let ReportLine { what, value, unit, goal, made_of } = &reported.line;
        json!({
            "bench": reported.bench, "what": what, "value": value, "unit": unit.trim(), "made_of": made_of,
            "goal": goal.map(|goal| json!({"sign": goal.better.sign(), "must": goal.must, "aim": goal.aim})),
            "misses_goal": reported.line.misses_goal(), "others": reported.others, "values": reported.values,
        })
    };
    Value::Array(lines.iter().map(line).collect())
}

/// Three digits that count.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "?".to_owned(),
        size if size >= 10_000.0 => format!("{:.0}k", value / 1e3),
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_knows_whether_it_meets_its_goal_or_its_aim() {
        let line = |value| ReportLine::plain("p50", value, "", "").at_most(1.5, 1.2);
        assert_eq!([1.0, 1.3, 1.6].map(|value| line(value).verdict()), ["aim", "goal", "MISSED"]);
        assert!(line(f64::NAN).misses_goal());
    }
}
