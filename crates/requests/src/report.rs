//! What differs from what is kept.

use crate::{Known, Script, Step};

#[derive(Default)]
pub struct Report {
    pub steps: usize,
    pub known: usize,
    /// A paragraph each.
    pub different: Vec<String>,
}

impl Report {
    /// Holds what Kubernetes answered against what is kept of it.
    pub fn real(&mut self, name: &str, script: &Script, answers: &[String]) {
        for (step, answer) in script.steps.iter().zip(answers) {
            if step.answer != *answer {
                self.differs(name, step, "kept", &step.answer, "Kubernetes", answer);
            }
        }
    }

    /// Holds what ours answered against what Kubernetes does; what is meant to differ is kept apart.
    pub fn ours(&mut self, name: &str, script: &Script, answers: &[String], known: &mut Known) {
        self.steps += script.steps.len();
        for (step, answer) in script.steps.iter().zip(answers) {
            match &step.ours {
                _ if step.answer == *answer => {}
                Some(ours) if known.reason(name, &step.name).is_some() => {
                    self.known += 1;
                    if ours != answer {
                        self.differs(name, step, "kept of ours", ours, "ours", answer);
                    }
                }
                _ => self.differs(name, step, "Kubernetes", &step.answer, "ours", answer),
            }
        }
    }

    fn differs(&mut self, name: &str, step: &Step, left: &str, was: &str, right: &str, is: &str) {
        let lines = |text: &str| text.replace('\n', "\n  ");
        let asked = format!("{} {}", step.method, step.target);
        let text = format!("{name} | {}: {asked}\n {left}:\n  {}\n {right}:\n  {}", step.name, lines(was), lines(is));
        self.different.push(text);
    }
}

impl Script {
    /// Keeps what was answered: by Kubernetes, if it was asked, and by ours where the row of a known difference allows it.
    pub fn keep(&mut self, name: &str, real: Option<&[String]>, ours: &[String], known: &mut Known) {
        for (at, step) in self.steps.iter_mut().enumerate() {
            if let Some(real) = real {
                step.answer.clone_from(&real[at]);
            }
            let differs = step.answer != ours[at] && known.reason(name, &step.name).is_some();
            step.ours = differs.then(|| ours[at].clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_row_excuses_a_difference() {
        let mut script =
            Script::parse("== a\nGET /\n---\n1\n\n== b\nGET /\n---\n1\n\n== c\nGET /\n---\n1\n").expect("a script");
        let answers = ["1", "2", "2"].map(str::to_owned);
        let mut known = Known::default();
        let mut report = Report::default();
        report.ours("s", &script, &answers, &mut known);
        assert_eq!((report.steps, report.known, report.different.len()), (3, 0, 2));
        script.keep("s", None, &answers, &mut known);
        assert!(script.steps.iter().all(|step| step.ours.is_none()));
        report.real("s", &script, &answers);
        assert_eq!(report.different.len(), 4);
    }
}
