//! `ephor reservation`.

use crate::clock;
use crate::exit::CliError;
use crate::objects::list;
use crate::objects::noun::{Fields, Noun, Object};
use clap::Args;
use ephor_model::submit::hostlist;
use ephor_model::{Span, Timestamp};
use ephor_proto::v1::{ObjectSet, PoolView, ReservationObject};

/// Commands about reservations of nodes.
pub type Reservation = Noun<ReservationFields>;

#[derive(Args)]
pub struct ReservationFields {
    /// Name
    name: String,
    /// When it begins: now+1hour, 16:30, 2026-12-01T16:30; a new one without it begins now
    #[arg(long, value_name = "TIME", value_parser = when)]
    start: Option<i64>,
    /// How long it lasts, as a time limit: minutes, 2:00:00, 1-0
    #[arg(long, value_name = "SPAN", value_parser = span, conflicts_with = "end")]
    duration: Option<i64>,
    /// When it is over
    #[arg(long, value_name = "TIME", value_parser = when)]
    end: Option<i64>,
    /// Its nodes, such as n[1-8]
    #[arg(long, value_name = "NODES", conflicts_with = "node_count")]
    nodes: Option<String>,
    /// How many nodes, chosen among those that nothing runs into it on
    #[arg(long, value_name = "N")]
    node_count: Option<u32>,
    /// Users who may run jobs in it, with commas; `none`: none
    #[arg(long, value_name = "LIST")]
    users: Option<String>,
    /// Accounts whose jobs may run in it, with commas; `none`: none
    #[arg(long, value_name = "LIST")]
    accounts: Option<String>,
    /// For maintenance: for nobody, where no users and accounts are named, and over other reservations
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    maintenance: Option<bool>,
    /// Make it also where jobs run into it; they go on
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_running: Option<bool>,
    /// Free text
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

fn when(text: &str) -> Result<i64, String> {
    let now = clock::now();
    Timestamp::parse_when(text, now, clock::offset(now)).map(|at| at.0).map_err(|e| e.to_string())
}

fn span(text: &str) -> Result<i64, String> {
    match Span::parse_limit(text).map_err(|e| e.to_string())? {
        Some(Span(ms)) if ms > 0 => Ok(ms),
        _ => Err(format!("'{text}' never ends, or at once; write minutes, 2:00:00 or 1-0")),
    }
}

impl Fields for ReservationFields {
    type Object = ReservationObject;

    fn name(&self) -> &str {
        &self.name
    }

    fn blank(&self) -> ReservationObject {
        ReservationObject { name: self.name.clone(), start: clock::now().0, ..ReservationObject::default() }
    }

    fn change(self, old: ReservationObject) -> anyhow::Result<ReservationObject> {
        // Whole seconds, as files have them.
        let seconds = |ms: i64| ms.div_euclid(1000) * 1000;
        let start = seconds(self.start.unwrap_or(old.start));
        // One that begins at another time lasts as long as before.
        let lasts = self.duration.or_else(|| Some(old.end - old.start).filter(|_| old.end > 0));
        let end = match self.end.or(lasts.map(|ms| start.saturating_add(ms))) {
            Some(end) => seconds(end),
            None => return Err(CliError::Usage("say when it is over: --duration or --end".into()).into()),
        };
        let nodes = match (&self.nodes, self.node_count) {
            (Some(text), _) => hostlist::expand(text).map_err(CliError::Usage)?,
            (None, Some(_)) => Vec::new(),
            (None, None) => old.nodes,
        };
        Ok(ReservationObject {
            start,
            end,
            nodes,
            node_count: self.node_count.unwrap_or(old.node_count),
            users: self.users.map_or(old.users, |names| list(&names)),
            accounts: self.accounts.map_or(old.accounts, |names| list(&names)),
            maintenance: self.maintenance.unwrap_or(old.maintenance),
            ignore_running: self.ignore_running.unwrap_or(old.ignore_running),
            description: self.description.unwrap_or(old.description),
            name: old.name,
        })
    }
}

impl Object for ReservationObject {
    const KIND: &'static str = "reservation";
    const HEADINGS: &'static [&'static str] = &["NAME", "STATE", "START", "END", "NODES", "USERS", "ACCOUNTS"];

    fn of(set: ObjectSet) -> Vec<Self> {
        set.reservations
    }

    fn set(reservations: Vec<Self>) -> ObjectSet {
        ObjectSet { reservations, ..ObjectSet::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn row(&self, _: &[PoolView]) -> Vec<String> {
        vec![
            self.name.clone(),
            state(self).into(),
            clock::show(self.start),
            clock::show(self.end),
            hostlist::fold(&self.nodes),
            self.users.join(","),
            self.accounts.join(","),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let yes = |flag| if flag { "yes".to_owned() } else { String::new() };
        vec![
            ("Reservation", self.name.clone()),
            ("State", state(self).into()),
            ("Description", self.description.clone()),
            ("Start", clock::show(self.start)),
            ("End", clock::show(self.end)),
            ("Nodes", hostlist::fold(&self.nodes)),
            ("Users", self.users.join(",")),
            ("Accounts", self.accounts.join(",")),
            ("Maintenance", yes(self.maintenance)),
            ("Ignores what runs", yes(self.ignore_running)),
        ]
    }
}

fn state(reservation: &ReservationObject) -> &'static str {
    let now = clock::now().0;
    match (now < reservation.start, now < reservation.end) {
        (true, _) => "planned",
        (false, true) => "active",
        (false, false) => "over",
    }
}
