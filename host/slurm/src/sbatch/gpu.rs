//! What `--gres`, `--gpus` and their like may say, and how it is shown again.

use super::PROGRAM;
use crate::failure::Failure;

/// A request for GPUs as it was spelt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus {
    /// `[TYPE:]N` for the model.
    pub plain: String,
    /// `gpu[:TYPE][:N]`, as it was spelt.
    pub shown: String,
}

const INVALID: &str = "Invalid generic resource (gres) specification";

/// Reads `[TYPE:]N` of `--gpus` and its like.
///
/// # Errors
/// More than one type, and what is malformed.
pub fn gpus(option: &str, text: &str) -> Result<Gpus, Failure> {
    if text.contains(',') {
        let text = format!("--{option}={text}: GPUs of several types in one job are not there yet; name one type");
        return Err(invalid(&text));
    }
    match text.split(':').collect::<Vec<_>>().as_slice() {
        // A single word that is no number is a type, of which one is meant.
        [word] if !is_number(word) => Ok(Gpus { plain: format!("{word}:1"), shown: format!("gpu:{word}") }),
        [_] | [_, _] => Ok(Gpus { plain: text.to_owned(), shown: format!("gpu:{text}") }),
        _ => Err(Failure::error(PROGRAM, INVALID, 1)),
    }
}

/// Reads the list of `--gres`; `None`: `none`.
///
/// # Errors
/// Other things than GPUs, several items, and what is malformed.
pub fn gres(text: &str) -> Result<Option<Gpus>, Failure> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let items: Vec<&str> = text.split(',').filter(|item| !item.is_empty()).collect();
    let bare = |item: &str| {
        let item = item.strip_prefix("gres/").unwrap_or(item);
        item.strip_prefix("gres:").unwrap_or(item).to_owned()
    };
    let mut gpus = None;
    for item in items {
        let item = bare(item);
        let (name, rest) = item.split_once([':', '=']).unwrap_or((&item, ""));
        match (name, &gpus) {
            ("gpu", None) => {
                let read = match rest {
                    "" => Gpus { plain: "1".into(), shown: "gpu".into() },
                    rest => self::gpus("gres=gpu", rest)?,
                };
                gpus = Some(read);
            }
            ("gpu", Some(_)) => {
                let text = format!("--gres={text}: GPUs of several types in one job are not there yet; name one type");
                return Err(invalid(&text));
            }
            ("shard" | "mps", _) => {
                let text = format!("--gres={item}: parts of a GPU are asked for as --gpus-per-node=0.5 here");
                return Err(invalid(&text));
            }
            _ => {
                let text = format!("--gres={item}: nodes count GPUs only; use --licenses for what the cluster counts");
                return Err(invalid(&text));
            }
        }
    }
    match gpus {
        None => Err(Failure::error(PROGRAM, INVALID, 1)),
        some => Ok(some),
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn invalid(why: &str) -> Failure {
    Failure::error(PROGRAM, INVALID, 1).after(format!("{PROGRAM}: error: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let read = |text| gres(text).unwrap().map(|g| (g.plain, g.shown));
        let pair = |plain: &str, shown: &str| Some((plain.to_owned(), shown.to_owned()));
        assert_eq!(read("gpu"), pair("1", "gpu"));
        assert_eq!(read("gpu:2"), pair("2", "gpu:2"));
        assert_eq!(read("gpu:a100"), pair("a100:1", "gpu:a100"));
        assert_eq!(read("gres:gpu:a100:8"), pair("a100:8", "gpu:a100:8"));
        assert_eq!(read("none"), None);
        assert_eq!(gpus("gpus", "4").unwrap().shown, "gpu:4");
        for (text, part) in [
            ("mps:100", "parts of a GPU"),
            ("nvme:1", "count GPUs only"),
            ("gpu:1,gpu:2", "several types"),
            ("gpu:a:b:1", INVALID),
            ("", INVALID),
        ] {
            let failure = gres(text).unwrap_err();
            assert!(failure.lines[0].contains(part), "{failure}");
            assert_eq!(failure.lines.last().unwrap(), &format!("sbatch: error: {INVALID}"));
            assert_eq!(failure.code, 1);
        }
    }
}
