//! Charts as inline SVG: lines and areas over an axis with units, and bars. Colours are variables of the page's style.

use super::text::{escape, number};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// One line of a chart.
pub(super) struct Series<'a> {
    /// What it shows.
    pub name: &'a str,
    /// Class of the style: `a` to `f`.
    pub class: &'a str,
    /// Whether what lies below it is filled.
    pub filled: bool,
    /// Values at equal distances over the whole axis: each holds until the next.
    pub values: Vec<f64>,
}

/// The axis below a chart.
pub(super) struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Value at the left end.
    pub from: f64,
    /// Value at the right end.
    pub until: f64,
}

impl Axis {
    /// Seconds of a trace, in a unit in which the numbers are short.
    pub fn seconds(from: i64, until: i64) -> Self {
        let length = (until - from) as f64;
        let (unit, seconds) = match length {
            l if l > 3.0 * 86_400.0 => ("days", 86_400.0),
            l if l > 3.0 * 3600.0 => ("hours", 3600.0),
            l if l > 180.0 => ("minutes", 60.0),
            _ => ("seconds", 1.0),
        };
        Self { label: format!("{unit} from the first submit"), from: 0.0, until: (length / seconds).max(1e-9) }
    }
}

/// A chart of lines; `top`: the least upper end of its upright axis.
pub(super) fn lines(series: &[Series<'_>], axis: &Axis, y_label: &str, top: f64) -> String {
    let most = series.iter().flat_map(|s| &s.values).fold(top, |most, value| most.max(*value));
    let (y_step, y_end) = scale(most, 5.0);
    let mut svg = open(y_label);
    for tick in ticks(y_step, y_end) {
        let y = down(tick / y_end);
        let _ = write!(svg, "<line class=grid x1={LEFT} x2={} y1={y:.1} y2={y:.1} />", WIDTH - RIGHT);
        let _ =
            write!(svg, "<text class=tick x={} y={:.1} text-anchor=end>{}</text>", LEFT - 6.0, y + 4.0, number(tick));
    }
    let (x_step, _) = scale(axis.until - axis.from, 9.0);
    for tick in ticks(x_step, axis.until) {
        let x = right((tick - axis.from) / (axis.until - axis.from));
        let base = HEIGHT - BOTTOM;
        let _ = write!(svg, "<line class=axis x1={x:.1} x2={x:.1} y1={base} y2={} />", base + 4.0);
        let _ = write!(svg, "<text class=tick x={x:.1} y={} text-anchor=middle>{}</text>", base + 17.0, number(tick));
    }
    for s in series {
        let path = steps(&s.values, y_end);
        if s.filled {
            let (base, end) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
            let _ =
                write!(svg, "<path class=\"area {}\" d=\"M{LEFT} {base} L{} L{end} {base} Z\" />", s.class, &path[1..]);
        }
        let _ = write!(svg, "<path class=\"line {}\" d=\"{path}\" />", s.class);
    }
    close(&mut svg, &axis.label);
    svg
}

/// A chart of bars, one for each name.
pub(super) fn bars(names: &[String], values: &[f64], x_label: &str, y_label: &str) -> String {
    // From 5 on the ticks are whole numbers.
    let (y_step, y_end) = scale(values.iter().fold(5.0, |most: f64, value| most.max(*value)), 5.0);
    let mut svg = open(y_label);
    for tick in ticks(y_step, y_end) {
        let y = down(tick / y_end);
        let _ = write!(svg, "<line class=grid x1={LEFT} x2={} y1={y:.1} y2={y:.1} />", WIDTH - RIGHT);
        let _ =
            write!(svg, "<text class=tick x={} y={:.1} text-anchor=end>{}</text>", LEFT - 6.0, y + 4.0, number(tick));
    }
    let each = (WIDTH - LEFT - RIGHT) / names.len().max(1) as f64;
    for (index, (name, value)) in names.iter().zip(values).enumerate() {
        let x = LEFT + each * index as f64;
        let y = down(value / y_end);
        let height = HEIGHT - BOTTOM - y;
        let (left, width) = (x + each * 0.1, each * 0.8);
        let _ = write!(svg, "<rect class=\"bar a\" x={left:.1} y={y:.1} width={width:.1} height={height:.1}>");
        let _ = write!(svg, "<title>{}: {}</title></rect>", escape(name), number(*value));
        let (middle, base) = (x + each / 2.0, HEIGHT - BOTTOM + 17.0);
        let _ = write!(svg, "<text class=tick x={middle:.1} y={base} text-anchor=middle>{}</text>", escape(name));
    }
    close(&mut svg, x_label);
    svg
}

fn open(y_label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"{0}\">\
         <text class=label transform=\"translate(13 {1}) rotate(-90)\" text-anchor=middle>{0}</text>",
        escape(y_label),
        (TOP + HEIGHT - BOTTOM) / 2.0,
    )
}

fn close(svg: &mut String, x_label: &str) {
    let (base, end) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let _ = write!(svg, "<line class=axis x1={LEFT} x2={end} y1={base} y2={base} />");
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let _ =
        write!(svg, "<text class=label x={middle} y={} text-anchor=middle>{}</text>", HEIGHT - 5.0, escape(x_label));
    svg.push_str("</svg>");
}

/// Distance of the ticks and end of an axis that begins at 0 and holds `most`, with at most about that many ticks.
fn scale(most: f64, count: f64) -> (f64, f64) {
    if most <= 0.0 {
        return (1.0, 1.0);
    }
    let rough = most / count;
    let ten = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * ten).find(|step| *step >= rough).unwrap_or(10.0 * ten);
    // A little slack, so that a value of exactly the last tick does not open another one.
    (step, (most / step - 1e-9).ceil().max(1.0) * step)
}

fn ticks(step: f64, end: f64) -> impl Iterator<Item = f64> {
    (0..=(end / step + 1e-9) as u32).map(move |n| f64::from(n) * step)
}

fn down(part: f64) -> f64 {
    HEIGHT - BOTTOM - part.clamp(0.0, 1.0) * (HEIGHT - BOTTOM - TOP)
}

fn right(part: f64) -> f64 {
    LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

/// Each value holds until the next: a path of level pieces.
fn steps(values: &[f64], end: f64) -> String {
    let mut path = String::new();
    let mut last = f64::NAN;
    for (index, value) in values.iter().enumerate() {
        let (x, y) = (right(index as f64 / values.len() as f64), down(value / end));
        let _ = match index {
            0 => write!(path, "M{x:.1} {y:.1}"),
            _ if (y - last).abs() < 0.05 => continue,
            _ => write!(path, "H{x:.1}V{y:.1}"),
        };
        last = y;
    }
    let _ = write!(path, "H{:.1}", WIDTH - RIGHT);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_what_they_must_with_few_round_ticks() {
        for most in [0.0, 0.3, 1.0, 7.0, 99.0, 100.0, 101.0, 43_210.0] {
            let (step, end) = scale(most, 5.0);
            assert!(end >= most && end <= (most * 2.0).max(1.0), "{most}: {end}");
            assert!((1..=6).contains(&(ticks(step, end).count() - 1)), "{most}");
        }
        assert_eq!(scale(100.0, 5.0), (20.0, 100.0));
        assert_eq!(scale(109.0, 9.0), (20.0, 120.0));
    }

    #[test]
    fn a_chart_is_well_formed() {
        let series = Series { name: "n", class: "a", filled: true, values: vec![1.0, 2.0, 2.0, 0.0] };
        let svg = lines(&[series], &Axis::seconds(0, 7200), "jobs <waiting>", 0.0);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
        assert!(svg.contains("jobs &lt;waiting&gt;") && svg.contains("minutes from the first submit"));
        assert_eq!(svg.matches("<path").count(), 2);
        assert!(!svg.contains("NaN"), "{svg}");
        assert!(bars(&["a&b".into()], &[0.0], "x", "y").contains("a&amp;b"));
    }
}
