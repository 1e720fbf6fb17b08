//! Starting jobs inside the reservation that they ask for: its nodes are free for them and for nobody else.

use super::{Cycle, CycleRefusal};
use crate::pools::Scope;
use crate::replica::whole_nodes;
use crate::reservations::why_not_inside;
use ephor_model::{Allocation, JobId, ReasonCode, ReservationNo, Span};
use ephor_placement::{ClassId, Mark, NoFit, Placing, Slot};

impl Cycle {
    /// Places a job on the nodes of its reservation, as if the reservation were not there; what is left of it is kept
    /// as before. Nothing is held after a refusal, which stands in nobody else's way.
    pub(super) fn start_inside(
        &mut self,
        id: JobId,
        no: ReservationNo,
        class: ClassId,
        limit: Span,
        how: &Placing,
        before: Mark,
    ) -> Result<Allocation, CycleRefusal> {
        let refuse = |cycle: &mut Self, text: String| {
            cycle.note_for(id, ReasonCode::Reservation, text.into(), None);
            let rows = cycle.book.rows_of_scope(&cycle.state, Scope::Reservation(no));
            Err(rows
                .first()
                .map_or(CycleRefusal::NotNow("its reservation is gone".into()), |row| CycleRefusal::Pool(*row)))
        };
        let Some(job) = self.state.element(id).map(|(entry, _)| entry.job.clone()) else {
            return Err(CycleRefusal::Other("that job is not pending".into()));
        };
        let name = job.spec.reservation.clone().unwrap_or_default();
        if let Some(text) = why_not_inside(&self.state, &job, &name, self.now, limit) {
            return refuse(self, text);
        }
        let Some(reservation) = self.state.reservations.get(&no).cloned() else {
            return refuse(self, format!("its reservation '{name}' is gone"));
        };
        let mut inside = how.clone();
        inside.only = Some(match &how.only {
            None => reservation.nodes.clone(),
            Some(only) => only.iter().copied().filter(|node| reservation.has(*node)).collect(),
        });
        let cluster = &mut self.replica.cluster;
        if let Some(kept) = self.kept.get(&no) {
            cluster.lift(*kept);
        }
        match cluster.try_start(id, class, self.now, limit, &inside, &mut self.work) {
            Ok(allocation) => {
                let (start, duration) = (reservation.start, reservation.end - reservation.start);
                let whole = whole_nodes(&self.state, &reservation.nodes);
                let slot = Slot { start, duration, allocation: whole, class };
                let again = self.replica.cluster.reserve(&slot);
                self.kept.insert(no, again);
                Ok(allocation)
            }
            Err(why) => {
                cluster.rollback(before);
                match why {
                    NoFit::NotNow(why) => refuse(self, format!("in reservation '{name}': {why}")),
                    NoFit::Never(why) => refuse(self, format!("in reservation '{name}': {why}")),
                    NoFit::Budget => Err(CycleRefusal::Budget),
                }
            }
        }
    }
}
