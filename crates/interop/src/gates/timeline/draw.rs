//! The figure: one lane for each member, one for the leader, one for the gate, over time.

use std::fmt::Write;

use super::{Lane, Run, Switch};

const WIDTH: f64 = 1040.0;
/// Where time begins and ends.
const LEFT: f64 = 92.0;
const RIGHT: f64 = 1020.0;
const TOP: f64 = 70.0;
const LANE: f64 = 48.0;
const BAR: f64 = 20.0;

const ON: &str = "#3f8f5f";
const OFF: &str = "#c98a3a";
const LEADER: &str = "#5b7aa8";
const FAINT: &str = "#d9dce1";
const INK: &str = "#24292f";

const STYLE: &str = "text{font:11px system-ui,'DejaVu Sans',sans-serif;fill:#24292f}\
.title{font-size:14px;font-weight:600}.lane{font-size:12px;font-weight:600}.in{fill:#fff;font-size:10px}\
.note{font-size:10px;fill:#57606a;stroke:#fff;stroke-width:3px;paint-order:stroke}.mid{text-anchor:middle}.end{text-anchor:end}";

/// Grows as parts are added; `end` is the run's length.
struct Canvas {
    out: String,
    end: f64,
}

pub(super) fn svg(run: &Run) -> String {
    let height = TOP + LANE * (run.lanes.len() as f64 + 2.0) + 22.0;
    let mut canvas = Canvas { out: String::new(), end: run.end };
    canvas.frame(height);
    let leader = TOP + LANE * run.lanes.len() as f64;
    // Behind the bars.
    canvas.switches(leader + LANE + BAR, &run.gate);
    for (n, lane) in run.lanes.iter().enumerate() {
        canvas.member(TOP + LANE * n as f64, lane);
    }
    canvas.leaders(leader, run);
    canvas.gate(leader + LANE, &run.gate);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">\
         \n<style>{STYLE}</style>\n{}</svg>\n",
        canvas.out
    )
}

impl Canvas {
    fn x(&self, at: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * at / self.end
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{text}");
    }

    fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.line(format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"));
    }

    fn bar(&mut self, (from, to): (f64, f64), y: f64, colour: &str, opacity: f64, label: &str) {
        let (x, width) = (self.x(from), (self.x(to) - self.x(from)).max(1.0));
        self.line(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"3\" fill=\"{colour}\" opacity=\"{opacity}\"/>"
        ));
        // A label that does not fit says nothing.
        if width > 6.0 * label.len() as f64 + 8.0 {
            self.text("in mid", (x + width / 2.0, y + 14.0), label);
        }
    }

    /// Title, legend and seconds.
    fn frame(&mut self, height: f64) {
        self.line(format_args!("<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>"));
        self.text("title", (16.0, 24.0), "A flag changes by rolling restarts, and the gate follows");
        let legend = "AtomicIncrement on three members, from a run of real processes. A triangle is a member's proposal, \
                      seen applied, with its log index. Pale: the process starts. Gap: it is down.";
        self.text("note", (16.0, 42.0), legend);
        let (bottom, end) = (height - 24.0, self.end);
        for second in 0..=end as u32 {
            let x = self.x(f64::from(second));
            self.line(format_args!(
                "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"{FAINT}\" stroke-width=\"0.6\"/>",
                TOP - 10.0
            ));
            if second % 2 == 0 {
                self.text("note mid", (x, bottom + 13.0), &format!("{second} s"));
            }
        }
    }

    fn lane_name(&mut self, y: f64, name: &str) {
        self.text("lane end", (LEFT - 12.0, y + 14.0), name);
    }

    fn member(&mut self, y: f64, lane: &Lane) {
        self.lane_name(y, &lane.name);
        let colour = |on: bool| if on { ON } else { OFF };
        for span in &lane.starting {
            self.bar((span.from, span.to), y, colour(span.what), 0.35, "");
        }
        for span in &lane.up {
            let label = if span.what { "flag on" } else { "flag off" };
            self.bar((span.from, span.to), y, colour(span.what), 1.0, label);
        }
        for (at, index, on) in &lane.proposals {
            let (x, tip) = (self.x(*at), y + BAR + 3.0);
            let (left, right, base) = (x - 4.0, x + 4.0, tip + 7.0);
            self.line(format_args!(
                "<path d=\"M{x:.1} {tip:.1} L{left:.1} {base:.1} L{right:.1} {base:.1} Z\" fill=\"{}\"/>",
                colour(*on)
            ));
            let words = if *on { "on" } else { "off" };
            // To its right: the line where the gate switches may come through below.
            self.text("note", (x + 7.0, base + 1.0), &format!("{words}, {index}"));
        }
    }

    fn leaders(&mut self, y: f64, run: &Run) {
        self.lane_name(y, "leader");
        for span in &run.leaders {
            self.bar((span.from, span.to), y, LEADER, 1.0, &span.what);
        }
    }

    fn gate(&mut self, y: f64, gate: &[Switch]) {
        self.lane_name(y, "gate");
        for (n, switch) in gate.iter().enumerate() {
            let from = if n == 0 { 0.0 } else { switch.at };
            let to = gate.get(n + 1).map_or(self.end, |next| next.at);
            let (colour, label) = if switch.on { (ON, "on") } else { (OFF, "off") };
            self.bar((from, to), y, colour, 1.0, label);
        }
    }

    /// A line through all lanes where the gate switches, and why.
    fn switches(&mut self, y: f64, gate: &[Switch]) {
        for switch in gate.iter().skip(1) {
            let x = self.x(switch.at);
            self.line(format_args!(
                "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{y}\" stroke=\"{INK}\" stroke-dasharray=\"3 3\"/>",
                TOP - 10.0
            ));
            let class = if x > (LEFT + RIGHT) / 2.0 { "end" } else { "" };
            let words = if switch.on { "on" } else { "off" };
            self.text(class, (x, y + 14.0), &format!("{words} at {}, by {}", switch.index, switch.cause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Span, *};

    #[test]
    fn shows_every_lane_and_every_switch() {
        let up = vec![Span { from: 0.0, to: 4.0, what: true }, Span { from: 5.0, to: 9.0, what: false }];
        let starting = vec![Span { from: 4.5, to: 5.0, what: false }];
        let lane = Lane { name: "m1".to_owned(), up, starting, proposals: vec![(5.1, 15, false)] };
        let switch = |at, index, on, cause: &str| Switch { at, index, on, cause: cause.to_owned() };
        let gate = vec![switch(0.0, 9, true, ""), switch(5.1, 15, false, "m1's proposal")];
        let leaders = vec![Span { from: 0.0, to: 9.0, what: "m2".to_owned() }];
        let figure = svg(&Run { end: 9.0, lanes: vec![lane], leaders, gate });
        for words in [">m1<", ">m2<", ">leader<", ">gate<", ">off, 15<", ">off at 15, by m1's proposal<", ">flag off<"]
        {
            assert!(figure.contains(words), "no {words} in {figure}");
        }
        assert_eq!(figure.matches("<rect").count(), 1 + 3 + 1 + 2, "a background, and a bar for each span");
    }
}
