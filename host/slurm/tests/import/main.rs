//! Sites as their files, each with the file for `ephor apply` and the report that must come of it, or with the mistakes
//! that must be told. `BLESS=1 cargo test -p ephor-slurm --test import` writes what comes of them.

use ephor_model::limits;
use ephor_slurm::import::{Imported, Mistakes, Verdict, import};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

fn import_folder(folder: &Path) -> Result<Imported, Mistakes> {
    import("slurm.conf", |name| match std::fs::read_to_string(folder.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.to_string()),
    })
}

/// Files that are held in memory.
fn import_texts(files: &[(&str, &str)]) -> Result<Imported, Mistakes> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    import("slurm.conf", |name| Ok(files.get(name).map(|text| (*text).to_owned())))
}

fn mistakes(files: &[(&str, &str)]) -> String {
    import_texts(files).unwrap_err().to_string()
}

fn check(path: &Path, is: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, is).unwrap();
    }
    let should = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(is, should, "{} says otherwise; BLESS=1 writes it", path.display());
}

#[test]
fn every_site_becomes_what_its_folder_says() {
    let mut sites = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let site = entry.unwrap().path();
        if !site.is_dir() {
            continue;
        }
        sites += 1;
        match import_folder(&site) {
            Ok(imported) => {
                assert!(!site.join("mistakes.txt").exists(), "{} has mistakes that were not found", site.display());
                check(&site.join("cluster.toml"), &imported.site.to_toml());
                check(&site.join("report.txt"), &imported.report.to_string());
            }
            Err(mistakes) => {
                assert!(!site.join("cluster.toml").exists(), "{}: {mistakes}", site.display());
                check(&site.join("mistakes.txt"), &format!("{mistakes}\n"));
            }
        }
    }
    assert_eq!(sites, 5);
}

#[test]
fn every_line_is_in_the_report() {
    for site in ["small", "gpu", "sets", "odd"] {
        let imported = import_folder(&folder().join(site)).unwrap();
        let places: Vec<_> = imported.report.entries.iter().map(|entry| entry.place.clone()).collect();
        for file in std::fs::read_dir(folder().join(site)).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_none_or(|ending| ending != "conf") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let name = file.file_name().unwrap().to_str().unwrap();
            let mut goes_on = false;
            for (at, line) in text.lines().enumerate() {
                let said = line.split('#').next().unwrap().trim();
                if !said.is_empty() && !goes_on {
                    let there = places.iter().filter(|place| place.file == name && place.line == at + 1).count();
                    assert_eq!(there, 1, "{site}/{name}:{}: {line}", at + 1);
                }
                goes_on = said.ends_with('\\');
            }
        }
    }
}

#[test]
fn times_in_every_form() {
    for (written, seconds) in [
        ("90", Some(5400)),
        ("1:30", Some(120)),
        ("2:00:05", Some(7260)),
        ("1-0", Some(86_400)),
        ("1-02:30", Some(95_400)),
        ("7-00:00:00", Some(604_800)),
        ("UNLIMITED", None),
        ("Infinite", None),
        ("-1", None),
    ] {
        let text = format!("PartitionName=p Nodes=ALL MaxTime={written} DefaultTime={written}");
        let site = import_texts(&[("slurm.conf", &text)]).unwrap().site;
        let queue = &site.queues[0];
        assert_eq!(queue.max_time.map(|time| time.0 / 1000), seconds, "{written}");
        assert_eq!(queue.default_time, queue.max_time);
    }
}

#[test]
fn everything_has_a_limit() {
    let large = "#".repeat(limits::IMPORT_FILE_BYTES + 1);
    assert!(mistakes(&[("slurm.conf", &large)]).starts_with("slurm.conf:1: has more than 16 MiB"));
    assert!(mistakes(&[("slurm.conf", "Include slurm.conf")]).contains("does one include itself?"));
    let many = "Include x\n".repeat(limits::IMPORT_FILES + 1);
    assert!(mistakes(&[("slurm.conf", &many), ("x", "")]).contains("more than 256 files"));
    assert!(mistakes(&[("slurm.conf", "NodeName=n[1-100001]")]).contains("takes 100000 at once"));
    assert!(mistakes(&[("slurm.conf", "NodeName=n[1-9999999]")]).contains("slurm.conf:1: NodeName=n[1-9999999]: "));
    let sets = format!("NodeName=n[1-50000]\n{}", "NodeSet=x Nodes=n[1-50000]\n".repeat(100));
    assert!(mistakes(&[("slurm.conf", &sets)]).contains("more than 4000000 names"));
    let pairs = "A=1 ".repeat(limits::IMPORT_PAIRS + 1);
    assert!(mistakes(&[("slurm.conf", &pairs)]).contains("more than 256 KEY=VALUE"));
    let wrong = "x\n".repeat(1000);
    assert_eq!(mistakes(&[("slurm.conf", &wrong)]).lines().count(), limits::IMPORT_MISTAKES);
    assert!(mistakes(&[]).contains("there is no file \"slurm.conf\""));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let unreadable = import("slurm.conf", |name| match name {
        "slurm.conf" => Ok(Some("A=1".into())),
        "gres.conf" => Err("permission denied".into()),
        _ => Ok(None),
    });
    assert_eq!(unreadable.unwrap_err().to_string(), "gres.conf:1: cannot be read: permission denied");
}

/// Texts that are near to being right, so that a good part of them goes all the way.
fn fragments() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("NodeName=".to_owned()),
        Just("PartitionName=".to_owned()),
        Just("NodeSet=".to_owned()),
        Just("SwitchName=".to_owned()),
        Just("Switches=".to_owned()),
        Just("Nodes=".to_owned()),
        Just("Feature=".to_owned()),
        Just("Gres=gpu:a100:".to_owned()),
        Just("MaxTime=".to_owned()),
        Just("Licenses=".to_owned()),
        Just("Include ".to_owned()),
        Just("DEFAULT".to_owned()),
        Just("ALL".to_owned()),
        "[a-c]{1,2}\\[[0-9,-]{1,5}\\]",
        "[a-c]{1,2}",
        "[0-9:-]{1,4}",
        "[ ,=\"#\\\\\n\t\\[\\]]",
        Just(" ".to_owned()),
        Just("\n".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(main in fragments(), other in fragments(), anything in any::<String>()) {
        let files =
            [("slurm.conf", main.as_str()), ("topology.conf", &other), ("gres.conf", &anything), ("a", &other)];
        if let Ok(imported) = import_texts(&files) {
            let toml = imported.site.to_toml();
            prop_assert!(toml.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", toml);
            let report = imported.report;
            prop_assert_eq!(report.to_string().lines().count(), report.entries.len() + 1);
            prop_assert_eq!(Verdict::ALL.iter().map(|v| report.count(*v)).sum::<usize>(), report.entries.len());
        }
    }
}
