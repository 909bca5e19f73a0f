//! Small tables, as text for a terminal and as Markdown for a file.

/// Rows of equal length under a head.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|text| (*text).to_owned()).collect()],
        }
    }

    /// Adds a row; it has as many cells as the head.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(
            cells.len(),
            self.rows[0].len(),
            "a row of the head's length"
        );
        self.rows.push(cells);
    }

    /// Columns aligned with spaces: the first to the left, the others to the right.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, width))| aligned(column, cell, *width))
                .collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }

    /// The same as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            out.push_str(&format!("| {} |\n", row.join(" | ")));
            if index == 0 {
                let rules: Vec<&str> = (0..row.len())
                    .map(|column| if column == 0 { "---" } else { "--:" })
                    .collect();
                out.push_str(&format!("| {} |\n", rules.join(" | ")));
            }
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.rows[0].len())
            .map(|column| {
                let lengths = self.rows.iter().map(|row| row[column].chars().count());
                lengths.max().unwrap_or(0)
            })
            .collect()
    }
}

fn aligned(column: usize, cell: &str, width: usize) -> String {
    if column == 0 {
        format!("{cell:<width$}")
    } else {
        format!("{cell:>width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["scheduler", "p99"]);
        table.row(vec!["a".into(), "10.25".into()]);
        assert_eq!(table.text(), "scheduler    p99\na          10.25\n");
        assert_eq!(
            table.markdown(),
            "| scheduler | p99 |\n| --- | --: |\n| a | 10.25 |\n"
        );
    }
}
