//! The parts of a page: heading, cards, charts with their keys, tables.

use super::groups::Group;
use super::plot::Series;
use super::text::{escape, number, percent, seconds};
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// A page that is being written.
pub(super) struct Page(String);

impl Page {
    /// Begins a page with that title.
    pub fn begin(title: &str) -> Self {
        let title = escape(title);
        Self(format!(
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
             <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n<main>\n<h1>{title}</h1>\n"
        ))
    }

    /// Names and values; empty values are left out.
    pub fn about(&mut self, entries: &[(&str, String)]) {
        self.0.push_str("<dl class=about>");
        for (name, value) in entries.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(self.0, "<dt>{}<dd>{}", escape(name), escape(value));
        }
        self.0.push_str("</dl>\n");
    }

    /// Headline figures.
    pub fn cards(&mut self, cards: &[(&str, String)]) {
        self.0.push_str("<div class=cards>");
        for (name, value) in cards {
            let _ = write!(self.0, "<div class=card><b>{}</b><span>{}</span></div>", escape(value), escape(name));
        }
        self.0.push_str("</div>\n");
    }

    /// A heading of a part.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.0, "<h2>{}</h2>", escape(text));
    }

    /// A sentence.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p class=soft>{}</p>", escape(text));
    }

    /// A chart with the names of its lines.
    pub fn chart(&mut self, svg: &str, series: &[Series<'_>], note: &str) {
        let _ = write!(self.0, "<figure>{svg}<figcaption>");
        for s in series {
            let _ = write!(self.0, "<i class=\"key {}\"></i>{}", s.class, escape(s.name));
        }
        let _ = writeln!(self.0, ", {}</figcaption></figure>", escape(note));
    }

    /// A chart with a sentence below it.
    pub fn picture(&mut self, svg: &str, note: &str) {
        let _ = writeln!(self.0, "<figure>{svg}<figcaption>{}</figcaption></figure>", escape(note));
    }

    /// Waits of groups of jobs; bars compare the means.
    pub fn groups(&mut self, first: &str, groups: &[Group]) {
        let longest = groups.iter().fold(0.0, |most: f64, group| most.max(group.mean)).max(1e-9);
        self.0.push_str("<div class=scroll><table><tr>");
        for head in [first, "Jobs", "Of the work", "Slowdown", "Median", "90th pct.", "Longest", "Mean wait", ""] {
            let _ = write!(self.0, "<th>{}", escape(head));
        }
        for group in groups {
            let _ = write!(self.0, "<tr><td>{}", escape(&group.name));
            let cells = [
                number(group.jobs as f64),
                percent(group.work),
                number(group.slowdown),
                seconds(group.median as f64),
                seconds(group.p90 as f64),
                seconds(group.max as f64),
                seconds(group.mean),
            ];
            for cell in cells {
                let _ = write!(self.0, "<td>{cell}");
            }
            let width = (100.0 * group.mean / longest).max(0.0);
            let _ = write!(self.0, "<td class=barred><i style=\"width:{width:.1}%\"></i>");
        }
        self.0.push_str("</table></div>\n");
    }

    /// A table; the first column holds names.
    pub fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        self.0.push_str("<div class=scroll><table><tr>");
        for head in heads {
            let _ = write!(self.0, "<th>{}", escape(head));
        }
        for row in rows {
            self.0.push_str("<tr>");
            for cell in row {
                let _ = write!(self.0, "<td>{}", escape(cell));
            }
        }
        self.0.push_str("</table></div>\n");
    }

    /// The whole page.
    pub fn end(mut self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let _ = write!(self.0, "<footer>Made by <code>ephor sim</code> {version}; ");
        self.0
            .push_str("what the figures mean stands in <code>docs/simulation.md</code>.</footer>\n</main>\n</html>\n");
        self.0
    }
}
