//! Every bound of the system, in one place, with its unit and its reason (law 10).

/// Elements of one job array. Slurm's largest configurable array is 4,000,001; half a GiB of elements is too much here.
pub const ARRAY_ELEMENTS: u32 = 1_000_000;
/// Bytes of a batch script. Slurm's default (`max_script_size`) is 4 MiB.
pub const SCRIPT_BYTES: usize = 4 << 20;
/// Bytes of a job's environment. Linux refuses an exec above about 2 MiB of arguments and environment together.
pub const ENVIRONMENT_BYTES: usize = 1 << 20;
/// Bytes of a job's arguments taken together; with the environment this stays below what Linux accepts.
pub const ARGUMENT_BYTES: usize = 256 << 10;
/// Bytes of one short text of a job: name, comment, path, pattern, feature.
pub const TEXT_BYTES: usize = 4096;
/// Bytes of the name of a queue, account, user, node, feature or policy.
pub const NAME_BYTES: usize = 255;
/// Words of one job that are only kept to be shown: more than any command has.
pub const WORDS: usize = 32;
/// Dependencies of one job.
pub const DEPENDENCIES: usize = 1024;
/// Arrays that one array waits for element by element: one bit of each element's record.
pub const CORRESPONDING: usize = 32;
/// Tasks of one job: 2^24, above the largest launch on record (about two million).
pub const TASKS: u32 = 1 << 24;
/// Nodes of one job, and of the cluster: ten times the 100,000 that cycles are measured at.
pub const NODES: u32 = 1_000_000;
/// GPUs of one node; today's largest boxes hold 16, MIG makes up to 7 of each.
pub const DEVICES_PER_NODE: u32 = 1024;
/// Features that the constraint of one job names: placement keeps one bit for each of its alternatives.
pub const FEATURES: usize = 64;
/// Parentheses in each other in a constraint.
pub const FEATURES_DEPTH: u32 = 8;
/// A job's nice value, both ways, as in Slurm.
pub const NICE: i64 = 2_147_483_645;
/// Longest time limit: 100 years in milliseconds; keeps every sum of times far from overflow.
pub const TIME_LIMIT_MS: i64 = 100 * 366 * 86_400_000;
/// Largest amount of one resource of one request or node, in the resource's unit (2^50).
pub const AMOUNT: i64 = 1 << 50;
/// Jobs that are not finished, over all users; 100,000 of them take about 100 MiB.
pub const LIVE_JOBS: usize = 2_000_000;
/// Finished jobs kept in the live state for queries and dependencies before they move to the history.
pub const FINISHED_IN_LIVE_STATE: usize = 10_000;
/// Commands waiting for the sequencer; more callers are told to try again.
pub const SEQUENCER_QUEUE: usize = 16_384;
/// Commands in one commit: bounds how long one transaction can take.
pub const COMMANDS_PER_COMMIT: usize = 2_048;
/// Groups of a plan in one commit, so that submits are never behind a whole large plan.
pub const GROUPS_PER_COMMIT: usize = 512;
/// Bytes of one gRPC message: script, environment and arguments with room to spare.
pub const MESSAGE_BYTES: usize = 16 << 20;
/// Bytes of a policy component. A Python component is about 18 MiB.
pub const COMPONENT_BYTES: usize = 64 << 20;
/// Bytes of a policy's configuration as JSON.
pub const POLICY_CONFIG_BYTES: usize = 1 << 20;
/// Generations kept for rollback in each slot.
pub const GENERATIONS_KEPT: usize = 8;
/// Reservations of nodes, those that are over among them.
pub const RESERVATIONS: usize = 10_000;
/// Licences that a site may ever make: their numbers are not used again.
pub const LICENCES: u16 = 60_000;
/// Kinds of licences that one job may ask for.
pub const LICENCES_PER_JOB: usize = 64;
/// Resources that one record of limits names, and accounts or users that one object names.
pub const NAMES_PER_OBJECT: usize = 10_000;
/// Objects in one `ephor apply`.
pub const APPLY_OBJECTS: usize = 100_000;
/// Jobs in one answer to a query; the caller pages on.
pub const QUERY_ROWS: usize = 100_000;
/// Promises that are kept at a time: those of a deep queue under conservative backfilling.
pub const PROMISES: usize = 100_000;
/// How long a promise is kept beyond its time, in milliseconds: an hour, far above the grace of whoever holds it up.
pub const PROMISE_LATE_MS: i64 = 3_600_000;
/// How long a claim is kept beyond its time, and an attempt counted on that was told to end and did not, in milliseconds.
pub const CLAIM_LATE_MS: i64 = 120_000;
/// How long an attempt has to end when its policy did not say, in milliseconds: what agents give by themselves.
pub const END_GRACE_MS: i64 = 30_000;
/// The longest grace of an eviction in milliseconds: a day.
pub const EVICTION_GRACE_MS: i64 = 86_400_000;
/// Join tokens that are open at a time.
pub const OPEN_TOKENS: usize = 100_000;
/// Life of a join token in milliseconds: one day.
pub const TOKEN_LIFE_MS: i64 = 86_400_000;
/// Bytes of one file of Slurm's configuration that is read; the largest sites have a few hundred KiB.
pub const IMPORT_FILE_BYTES: usize = 16 << 20;
/// Files of Slurm's configuration that are read together, those that are included among them.
pub const IMPORT_FILES: usize = 256;
/// Files that include each other in a row: more is one that includes itself.
pub const IMPORT_INCLUDES_DEPTH: usize = 16;
/// Names of nodes that all lists of Slurm's configuration are written out into: 60 lists of the largest cluster there.
pub const IMPORT_NAMES: usize = 4_000_000;
/// `KEY=VALUE` on one line of Slurm's configuration: a partition has some fifty keys.
pub const IMPORT_PAIRS: usize = 256;
/// Mistakes in Slurm's configuration that are told at once: more are not read by anybody.
pub const IMPORT_MISTAKES: usize = 100;
/// Tasks that one node has of a step: each takes a process and up to four descriptors of the step's shim.
pub const STEP_TASKS_PER_NODE: u32 = 4096;
/// Tasks of one step: as many as one `srun` can serve the streams of.
pub const STEP_TASKS: u32 = 65_536;
/// Steps of one attempt that run or wait for their start at a time.
pub const STEPS_RUNNING: usize = 4096;
/// Addresses at which a step's streams may be served.
pub const STEP_ADDRESSES: usize = 8;
/// Bytes of the certificate of a step's streams; one with an elliptic key has about 600.
pub const STEP_CERTIFICATE_BYTES: usize = 4096;
/// Bytes of a step's key in hexadecimal: 32 random ones.
pub const STEP_KEY_BYTES: usize = 64;
/// Bytes of a task's output or input in one message: small, so that signals and other tasks do not wait behind it.
pub const STEP_DATA_BYTES: usize = 32 << 10;
/// Bytes of one message between `srun` and a node: its data with room to spare, or the ends of all tasks of a node.
pub const STEP_MESSAGE_BYTES: usize = 64 << 10;
/// Bytes of a line that are held back until it is whole.
pub const STEP_LINE_BYTES: usize = 16 << 10;
/// How long a planned step is kept for its start, in milliseconds.
pub const STEP_PLAN_MS: u64 = 30_000;
/// How long the nodes of a step have to start it, in milliseconds: a node with a slow directory of users takes seconds.
pub const STEP_START_MS: u64 = 60_000;
/// How wide a number in the pattern of a file's name may be padded; Slurm's bound.
pub const PATTERN_WIDTH: usize = 10;
