//! Tables in box characters: centred headings, values to the right.

pub struct Table {
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn render(&self) -> String {
        let out = &mut String::new();
        let header: Vec<String> = self.header.iter().map(|name| name.replace('_', " ").to_uppercase()).collect();
        let widths: Vec<usize> = (0..header.len())
            .map(|i| self.rows.iter().map(|row| width(&row[i])).chain([width(&header[i])]).max().unwrap_or(0))
            .collect();
        rule(out, &widths, ['┌', '┬', '┐']);
        row(out, &widths, &header, centre);
        // Without rows there is nothing to part from the heading.
        if !self.rows.is_empty() {
            rule(out, &widths, ['├', '┼', '┤']);
        }
        for cells in &self.rows {
            row(out, &widths, cells, |text, width| format!("{}{text}", pad(width)));
        }
        rule(out, &widths, ['└', '┴', '┘']);
        std::mem::take(out)
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad(width: usize) -> String {
    " ".repeat(width)
}

fn centre(text: &str, space: usize) -> String {
    format!("{}{text}{}", pad(space / 2), pad(space - space / 2))
}

fn rule(out: &mut String, widths: &[usize], [left, middle, right]: [char; 3]) {
    let cells: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    out.push_str(&format!("{left}{}{right}\n", cells.join(&middle.to_string())));
}

fn row(out: &mut String, widths: &[usize], cells: &[String], align: fn(&str, usize) -> String) {
    let cells: Vec<String> = cells.iter().zip(widths).map(|(cell, max)| align(cell, max - width(cell))).collect();
    out.push_str(&format!("│ {} │\n", cells.join(" │ ")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_a_table() {
        let rows = vec![vec!["127.0.0.1:2379".to_owned(), "true".to_owned()], vec!["b".to_owned(), "false".to_owned()]];
        let table = Table { header: vec!["endpoint", "is_up"], rows };
        let expected = "\
┌────────────────┬───────┐
│    ENDPOINT    │ IS UP │
├────────────────┼───────┤
│ 127.0.0.1:2379 │  true │
│              b │ false │
└────────────────┴───────┘
";
        assert_eq!(table.render(), expected);
    }
}
