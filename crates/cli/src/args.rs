//! The command line of semel: what a person or an agent may say.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use semel::command::{ChangeArgs, SAFE};
use semel_core::answer::EffectWord;
use semel_core::class::Class;
use semel_core::policy::duration;
use semel_detect::audit::finding::FindingLevel;
use semel_detect::eval::scenario::EvalDoor;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Parser)]
#[command(
    name = "semel",
    version,
    about = "Each intended effect runs at most once, whoever retries.",
    after_help = "Examples:\n  \
        semel run --key invoice-1001 -- ./charge.sh cus_42 4900\n  \
        semel ledger\n  \
        semel ledger resolve ef_01K… --applied --reason \"seen in the dashboard\"\n  \
        semel demo",
    propagate_version = true
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Print one JSON document on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing on stderr but errors.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Colour in terminals, always or never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Use this policy file instead of the semel.toml found upward from here.
    #[arg(long, global = true, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Use this ledger: a file, or a server: postgres://, redis://, etcd://.
    #[arg(long, global = true, value_name = "LEDGER")]
    pub ledger: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// Not for people: `semel run` leaves this process behind when a command's background processes still write.
pub const DRAIN_OUTPUT: &str = "drain-output";

// Deferred: only the command that was said is built. So the comments of what is flattened into one must not be its help.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Run a command so that its effect happens at most once.
    Run(Box<RunArgs>),
    /// Stand in front of an MCP server: each intended effect of its tools happens at most once.
    Mcp(Box<McpArgs>),
    /// Offer the configured servers, guarded, over HTTP.
    Serve(ServeArgs),
    /// Serve one program that has started this process: the SDKs do.
    #[command(hide = true)]
    Sdk(SdkArgs),
    /// Read the ledger and settle doubts. Alone: lists the effects that need a person.
    Ledger(LedgerArgs),
    /// Guard the shell of a coding agent: answers one event of its client, read from standard input.
    Hook(HookArgs),
    /// Claim a planned command of a coding agent's shell; the hook writes this into its command line.
    #[command(hide = true)]
    Began(BracketArgs),
    /// Say that it succeeded.
    #[command(hide = true)]
    Ended(BracketArgs),
    /// Repeat a command of a coding agent's shell on purpose; the hook reads this.
    #[command(hide = true)]
    Again(AgainArgs),
    /// Put semel in front of the MCP servers of your clients. Alone: shows the changes.
    Init(InitArgs),
    /// Stop a run: nothing more starts in it.
    Cancel(CancelArgs),
    /// Compute the idempotency key of an action with its arguments.
    Key(KeyArgs),
    /// Make, list and revoke tokens for `semel serve`.
    Token(TokenArgs),
    /// Show what was asked, sent, done and saved.
    Stats(StatsArgs),
    /// Find effects that ran twice, in the sessions and traces that agents keep.
    Audit(AuditArgs),
    /// Compare the ledger with what is out there.
    Reconcile(Box<ReconcileArgs>),
    /// Try a guard: scripted agents, lost answers, and a world that counts.
    Eval(EvalArgs),
    /// Score a tool, a server or an API: what breaks if an agent does it twice?
    Check(CheckArgs),
    /// The world of `semel eval`, as a command or an MCP server.
    #[command(name = EVAL_WORLD, hide = true)]
    EvalWorld(EvalWorldArgs),
    /// Write, test and explain the policy.
    Policy(PolicyArgs),
    /// Explain an error code.
    Explain(ExplainArgs),
    /// Inspect paths, permissions, versions and the ledger.
    Doctor(DoctorArgs),
    /// Show what semel does, on a ledger and a payment tool of its own.
    Demo(DemoArgs),
    /// Read standard input to its end, so that background processes of a command can go on writing.
    #[command(name = DRAIN_OUTPUT, hide = true)]
    DrainOutput,
    /// Print shell completions.
    Completions(CompletionsArgs),
    /// Write man pages into a directory.
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct HookArgs {}

#[derive(Debug, Args)]
pub struct BracketArgs {
    /// The plan of the command.
    pub id: String,
}

#[derive(Debug, Args)]
pub struct AgainArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "Safe to repeat.\n\nExamples:\n  \
    semel mcp --name github -- npx -y @modelcontextprotocol/server-github\n  \
    semel mcp -- python3 billing_server.py             its name is billing\n\n\
    Standard output carries the protocol alone. In .mcp.json:\n  \
    {\"command\": \"semel\", \"args\": [\"mcp\", \"--name\", \"github\", \"--\", \"npx\", \"-y\", \"…\"]}")]
pub struct McpArgs {
    /// The server's name in the policy and the ledger: mcp:NAME/tool. It decides which rules and packs hold.
    /// Unless given, it comes from the package, the script or the program, or from the host of --url.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The run that all calls belong to.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Believe the server's readOnlyHint and idempotentHint even where they take protection away.
    #[arg(long)]
    pub trust_annotations: bool,
    /// Leave the server's tools in the listing as it wrote them.
    #[arg(long)]
    pub no_decoration: bool,
    /// Offer no tools of semel's own (semel_ledger, semel_report).
    #[arg(long)]
    pub no_tools: bool,
    /// Offer a dry run of guarded tools as the optional argument semel_dry_run.
    #[arg(long)]
    pub dry_run_argument: bool,
    /// The server is the same one in every directory that it is started from.
    #[arg(long, conflicts_with = "url")]
    pub any_directory: bool,
    /// A remote server instead of a command.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// A header for the remote server, with the environment variable that holds its value.
    #[arg(long, value_name = "NAME=VARIABLE", requires = "url")]
    pub header_env: Vec<String>,
    /// The server's command, best after two dashes. Some clients swallow these, so they may be missing.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "Safe to repeat.\n\nIn semel.toml:\n  \
    [mcp.github]\n  \
    url = \"https://api.githubcopilot.com/mcp/\"\n  \
    headers_env = { Authorization = \"GITHUB_AUTHORIZATION\" }\n\n\
    Then http://127.0.0.1:7777/mcp/github is that server, guarded. Clients show\n\
    the token that lies beside the ledger, as `Authorization: Bearer …` or, where\n\
    that header is the upstream's, as `Semel-Token: …`.")]
pub struct ServeArgs {
    /// Where to listen; 127.0.0.1:7777 unless the policy's [serve] says otherwise.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen)]
    pub listen: Option<std::net::SocketAddr>,
}

/// An address; a port alone is one of this machine, and so is `localhost`.
fn listen(text: &str) -> Result<std::net::SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let local = || port.parse().ok().map(|port: u16| (std::net::Ipv4Addr::LOCALHOST, port).into());
    text.parse().ok().or_else(local).ok_or_else(|| "such as 127.0.0.1:7777".to_owned())
}

fn span(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| format!("{error}, such as 90s, 30m, 24h or 7d"))
}

fn finding_level() -> impl TypedValueParser<Value = FindingLevel> {
    PossibleValuesParser::new(FindingLevel::ALL.map(FindingLevel::word))
        .map(|word| FindingLevel::parse(&word).expect("one of the possible values"))
}

fn eval_door() -> impl TypedValueParser<Value = EvalDoor> {
    PossibleValuesParser::new(EvalDoor::ALL.map(EvalDoor::word))
        .map(|word| EvalDoor::parse(&word).expect("one of the possible values"))
}

fn class() -> impl TypedValueParser<Value = Class> {
    PossibleValuesParser::new(Class::ALL.map(Class::word))
        .map(|word| Class::parse(&word).expect("one of the possible values"))
}

fn effect_word() -> impl TypedValueParser<Value = EffectWord> {
    PossibleValuesParser::new(EffectWord::SAYABLE.map(EffectWord::word))
        .map(|word| EffectWord::parse(&word).expect("one of the possible values"))
}

/// One entry of `--refused-exit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedExit {
    Any,
    Code(u8),
}

fn refused_exit(text: &str) -> Result<RefusedExit, String> {
    match (text, text.parse()) {
        ("any", _) => Ok(RefusedExit::Any),
        (_, Ok(code @ 1..)) => Ok(RefusedExit::Code(code)),
        _ => Err("exit codes from 1 to 255, or any".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    semel run --key deploy-web-1.8.2 -- ./deploy.sh web 1.8.2\n  \
    semel run --probe './paid.sh 1001' --class consequential -- ./charge.sh 1001\n  \
    semel run --again 'second shipment' -- ./ship.sh 1001\n\n\
    Exit codes: the command's own; 120 refused, 121 in doubt (do not retry), 122 in flight (wait),\n\
    123 drift, 125 semel failed, 126 not executable, 127 not found. See `semel explain CODE`.")]
pub struct RunArgs {
    /// A key that names this request; the same key again is the same effect.
    #[arg(long, visible_alias = "idempotency-key", value_name = "KEY")]
    pub key: Option<String>,
    /// The action's name, if it should not be the program's.
    #[arg(long, value_name = "NAME")]
    pub action: Option<String>,
    /// The run this call belongs to.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Do it once more on purpose; the same reason again is the same repetition.
    #[arg(long, value_name = "WHY")]
    pub again: Option<String>,
    /// How a repeat is treated; `semel policy explain` says which class a command has otherwise.
    #[arg(long, value_name = "CLASS", value_parser = class())]
    pub class: Option<Class>,
    /// Exit codes after which it certainly did not happen, beside those of its rule: numbers, or `any` for a command
    /// whose failure leaves nothing behind, such as a build. With a key every other failure is in doubt.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = refused_exit)]
    pub refused_exit: Vec<RefusedExit>,
    /// The change that it makes when it succeeds.
    #[arg(long, value_name = "EFFECT", value_parser = effect_word())]
    pub effect: Option<EffectWord>,
    /// End the command after this time; its effect is then in doubt.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub timeout: Option<Duration>,
    /// A command that asks whether it happened: exit 0 yes, 1 no, other unknown. Split as a shell would, run without
    /// one.
    #[arg(long, value_name = "CMD")]
    pub probe: Option<String>,
    /// How long after the last possible sending a probe's no begins to count.
    #[arg(long, value_name = "TIME", value_parser = span, requires = "probe")]
    pub probe_quiet: Option<Duration>,
    /// Take turns with other calls on this resource.
    #[arg(long, value_name = "RESOURCE")]
    pub serialize_by: Option<String>,
    /// How long to wait for the same call elsewhere before answering "in flight".
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub wait: Option<Duration>,
    /// Read piped input to its end first, as part of what is asked, or hand it through unread. In a loop that reads
    /// lines itself, give </dev/null.
    #[arg(long, value_name = "HOW", default_value = "read")]
    pub stdin: StdinChoice,
    /// Say what would happen, and do nothing.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct SdkArgs {
    /// Lines of JSON on standard input and output.
    #[arg(long, required = true)]
    pub stdio: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StdinChoice {
    Read,
    Pass,
}

#[derive(Debug, Clone, Args)]
pub struct OperatorArgs {
    /// An operator token, for whoever rules without a terminal. SEMEL_OPERATOR_TOKEN says the same, and no list of
    /// processes shows it.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(Debug, Args)]
pub struct LedgerArgs {
    /// Only this run.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// As Markdown, to give back to a model that has forgotten what it did.
    #[arg(long)]
    pub markdown: bool,
    #[command(subcommand)]
    pub command: Option<LedgerCommand>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum LedgerCommand {
    /// List effects, newest first.
    List(ListArgs),
    /// Find effects by a part of their subject, action or run, by the end of their id, or by their idempotency key.
    Find(FindArgs),
    /// List runs, the one that changed last first.
    Runs(RunsArgs),
    /// Show one effect with its attempts and history.
    #[command(after_help = SAFE)]
    Show(EffectName),
    /// Show the recorded reply of an effect.
    #[command(after_help = SAFE)]
    Reply(EffectName),
    /// Show the journal, and follow it.
    Tail(TailArgs),
    /// Record whether an effect in doubt happened.
    Resolve(ResolveArgs),
    /// Take a ruling back.
    Reopen(BecauseArgs),
    /// Allow one repeat of an effect, even if its rule requires a person: the next equal call runs.
    AllowRepeat(BecauseArgs),
    /// Take an effect back, as an effect of its own, where its rule says how.
    Undo(UndoArgs),
    /// List every effect, one JSON document a line.
    #[command(after_help = SAFE)]
    Export {
        /// Leave recorded replies out.
        #[arg(long)]
        no_replies: bool,
    },
    /// Copy the whole ledger to another engine or place, and compare both.
    Copy(CopyArgs),
    /// Write a backup of the ledger and its secret, also while semel runs.
    Backup(BackupArgs),
    /// Replace the ledger with a backup. Calls that the backup does not know, and that may be older than the restore, are
    /// held.
    Restore(RestoreArgs),
    /// Drop replies and facts that are older than the policy keeps them.
    Prune(PruneArgs),
    /// Say that a server on stdio is still the same one, although it is started otherwise than before.
    SameServer(SameServerArgs),
    /// Show whether calls are held because the ledger may have lost some.
    #[command(after_help = SAFE)]
    Quarantine,
    /// Tell semel that the ledger was restored or may have lost claims: calls that may be older are held.
    MarkRestored(MarkRestoredArgs),
    /// End the quarantine, if no older call will be retried.
    EndQuarantine(EndQuarantineArgs),
    /// Make a new secret, because the old one is lost or leaked. A quarantine begins.
    RotateSecret(RotateSecretArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    semel ledger copy ledger.db postgres://semel@db.example.com/agents\n  \
    semel ledger copy env:OLD env:NEW      addresses with a password, in variables\n\n\
    First stop everything that uses the ledger. If the copy is interrupted, the same command continues it. No command\n\
    uses the copy until it is complete and verified.")]
pub struct CopyArgs {
    /// The ledger: a file, the address of a server, or env:NAME for a variable that holds one.
    pub from: String,
    /// Where the copy goes: a place without a ledger.
    pub to: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file to write. Its secret lies beside it.
    pub file: PathBuf,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup: a file with its secret beside it.
    pub file: PathBuf,
    /// Set the ledger that is there aside, under another name.
    #[arg(long)]
    pub replace: bool,
    /// Why, for whoever reads the ledger.
    #[arg(long, value_name = "TEXT", default_value = "a backup was restored")]
    pub reason: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Drop replies older than this instead.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub replies: Option<Duration>,
    /// Prune although the clock is far past the newest line of the ledger.
    #[arg(long)]
    pub clock_is_right: bool,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct SameServerArgs {
    /// Its name.
    pub name: String,
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct MarkRestoredArgs {
    /// The cause, such as a restored backup.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct EndQuarantineArgs {
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct RotateSecretArgs {
    /// The reason for a new secret, such as a leak.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Replace a secret that is still there; the old one is set aside.
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub change: ChangeArgs,
}

// An effect, by its id or by the idempotency key of its call.
#[derive(Debug, Args)]
pub struct EffectName {
    /// An effect id, or the end of one.
    #[arg(required_unless_present = "key")]
    pub effect: Option<String>,
    /// The idempotency key that the call came with, instead of an id.
    #[arg(long, value_name = "KEY", conflicts_with = "effect")]
    pub key: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct RunsArgs {
    /// At most this many.
    #[arg(long, default_value = "50", value_name = "N")]
    pub limit: NonZeroUsize,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct ListArgs {
    /// Only this run.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only this state.
    #[arg(long, value_name = "STATE")]
    pub state: Option<StateChoice>,
    /// Only actions that contain this.
    #[arg(long, value_name = "TEXT")]
    pub action: Option<String>,
    /// Only effects younger than this.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub since: Option<Duration>,
    /// Only effects older than this one: `next` of the page before.
    #[arg(long, value_name = "EFFECT")]
    pub before: Option<String>,
    /// At most this many.
    #[arg(long, default_value = "50", value_name = "N")]
    pub limit: NonZeroUsize,
    /// Do not shorten subjects and reasons.
    #[arg(long)]
    pub wide: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Safe to repeat.\n\nExamples:\n  \
    semel ledger find 1001\n  \
    semel ledger find invoice-1001 --since 30d\n\n\
    It looks at every open effect and at the newest 10,000, and says how far it came.")]
pub struct FindArgs {
    /// What to look for; capitals make no difference.
    pub text: String,
    /// Look at every effect, however many there are.
    #[arg(long)]
    pub all: bool,
    /// Look at every effect that is younger than this.
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "all")]
    pub since: Option<Duration>,
    /// Go on where the page before ended: its `next`.
    #[arg(long, value_name = "PLACE")]
    pub before: Option<u64>,
    /// At most this many.
    #[arg(long, default_value = "50", value_name = "N")]
    pub limit: NonZeroUsize,
    /// Do not shorten subjects and reasons.
    #[arg(long)]
    pub wide: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum StateChoice {
    #[value(alias = "in-flight")]
    InFlight,
    #[value(alias = "in-doubt")]
    InDoubt,
    Applied,
    #[value(alias = "not-applied")]
    NotApplied,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct TailArgs {
    /// Begin with the last N lines.
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N")]
    pub lines: usize,
    /// Stop at the end instead of waiting for more.
    #[arg(long)]
    pub no_follow: bool,
}

#[derive(Debug, Args)]
#[group(id = "verdict", required = true, multiple = false)]
pub struct VerdictArgs {
    /// It happened.
    #[arg(long, alias = "happened", group = "verdict")]
    pub applied: bool,
    /// It certainly did not happen.
    #[arg(long, alias = "did-not-happen", group = "verdict")]
    pub not_applied: bool,
}

#[derive(Debug, Args)]
pub struct ResolveArgs {
    #[command(flatten)]
    pub name: EffectName,
    #[command(flatten)]
    pub verdict: VerdictArgs,
    /// How you know.
    #[arg(long, alias = "note", value_name = "TEXT")]
    pub reason: String,
    /// What it answered, for whoever asks next: a file, `-` for stdin, or JSON that begins with `{` or `[`.
    #[arg(long, value_name = "FILE|JSON", conflicts_with = "not_applied")]
    pub reply: Option<PathBuf>,
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct BecauseArgs {
    #[command(flatten)]
    pub name: EffectName,
    /// Why.
    #[arg(long, alias = "note", value_name = "TEXT")]
    pub reason: String,
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "In semel.toml:\n  \
    [[rule]]\n  \
    match = \"cli:charge.sh\"\n  \
    [rule.undo]\n  \
    cmd = [\"./refund.sh\", \"{reply.id}\"]\n\n\
    Values are filled in when the effect is done. A second undo of one effect changes nothing.")]
pub struct UndoArgs {
    #[command(flatten)]
    pub name: EffectName,
    /// Why.
    #[arg(long, alias = "note", value_name = "TEXT")]
    pub reason: String,
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    semel init                               what would change; nothing is written\n  \
    semel init --write                       change it; what was there is kept in the state directory\n  \
    semel init --client cursor --server github --write\n  \
    semel init --undo --write                take semel out again\n\n\
    Any other client starts semel with the server's own command behind it:\n  \
    {\"command\": \"semel\", \"args\": [\"mcp\", \"--name\", \"NAME\", \"--\", \"COMMAND\", \"ARGUMENT\"]}")]
pub struct InitArgs {
    /// Write the files; without it they are only shown.
    #[arg(long)]
    pub write: bool,
    /// Take semel out of each server that is as semel wrote it.
    #[arg(long)]
    pub undo: bool,
    /// Write words that hold on every machine (`semel`, and commands as they are), into your own files too.
    #[arg(long, conflicts_with_all = ["absolute", "undo"])]
    pub portable: bool,
    /// Write whole paths, into the files of a project too.
    #[arg(long, conflicts_with = "undo")]
    pub absolute: bool,
    /// Only this server; may be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    pub server: Vec<String>,
    /// Only this client; may be repeated.
    #[arg(long, value_name = "CLIENT")]
    pub client: Vec<ClientChoice>,
    #[command(flatten)]
    pub change: ChangeArgs,
}

impl InitArgs {
    /// Files are written only where that is said, and no dry run is.
    pub fn writes(&self) -> bool {
        self.write && !self.change.dry_run
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientChoice {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode", alias = "vs-code")]
    VsCode,
    Windsurf,
    #[value(alias = "gemini-cli")]
    Gemini,
    Codex,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The run's name.
    pub run: String,
    /// Let the run start things again.
    #[arg(long)]
    pub lift: bool,
    /// Why, for whoever reads the ledger.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct KeyArgs {
    /// The action, such as mcp:billing/charge or fn:charge.
    pub action: String,
    /// Its arguments, as one JSON value; `-` reads stdin.
    #[arg(long, value_name = "JSON")]
    pub args: String,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct StatsArgs {
    /// How far back, in whole days.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "7d")]
    pub since: Duration,
    /// Only this tenant.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Safe to repeat.\n\nExamples:\n  \
    semel audit                                         the agents of this machine, the last 30 days\n  \
    semel audit traces.json --fail-on likely            in CI\n  \
    semel audit --as html --output audit.html logs/\n  \
    semel audit calls.jsonl --map tool=name,args=input,result=output,time=ts\n\n\
    Reads sessions of Claude Code, Codex and Gemini CLI; OpenAI and Anthropic conversations; OpenTelemetry spans; exports of \
    LangSmith and Langfuse; MCP logs; semel's own journal. Files may be compressed with gzip. Nothing is sent anywhere.")]
pub struct AuditArgs {
    /// Files and directories. Without any, the sessions that Claude Code, Codex and Gemini CLI keep here.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only this long back, such as 12h or 7d. Without paths, 30d.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub since: Option<Duration>,
    /// The form of the report; --json is another one.
    #[arg(long = "as", value_name = "FORM", default_value = "text", conflicts_with = "json")]
    pub form: AuditForm,
    /// Write the report into this file.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with 1 if a finding is at least this sure.
    #[arg(long, value_name = "LEVEL", value_parser = finding_level())]
    pub fail_on: Option<FindingLevel>,
    /// Watch files of lines while they grow, and tell each duplicate when it happens; also to the policy's [notify].
    #[arg(long, conflicts_with_all = ["form", "output", "fail_on", "since"])]
    pub follow: bool,
    /// Read JSON lines of another program: which member is the tool, its args, result, error, id, session and time.
    #[arg(long, value_name = "NAME=PATH,…")]
    pub map: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuditForm {
    Text,
    Html,
    Sarif,
    Junit,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    semel check -- mytool                                runs it with --help, and nothing else\n  \
    semel check --sandbox ./sandbox.sh -- mytool         tries each example twice under one key\n  \
    semel check mcp -- npx -y some-server\n  \
    semel check http --openapi openapi.json\n  \
    semel check concurrent --sandbox ./sandbox.sh -- mytool set --value 1\n\n\
    A sandbox is a command that is called with one word: setup, examples (prints the arguments of one call a line), count \
    (prints how many effects there were) and teardown."
)]
pub struct CheckArgs {
    #[command(subcommand)]
    pub command: Option<CheckCommand>,
    #[command(flatten)]
    pub tool: CheckTool,
}

#[derive(Debug, Args)]
pub struct CheckTool {
    /// A command that sets up a place to try things in, and counts.
    #[arg(long, value_name = "CMD")]
    pub sandbox: Option<String>,
    /// Run the tool with `--help`, although nothing says that it knows that.
    #[arg(long)]
    pub run_help: bool,
    /// Commands that change nothing, whatever their names say, with all below them.
    #[arg(long, value_name = "COMMAND,…", value_delimiter = ',')]
    pub reads: Vec<String>,
    /// The tool.
    #[arg(last = true, value_name = "TOOL")]
    pub words: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum CheckCommand {
    /// The tools of an MCP server.
    #[command(after_help = SAFE)]
    Mcp {
        /// The server's name in the policy.
        #[arg(long, value_name = "NAME", default_value = "server")]
        name: String,
        /// The server's command.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// The operations of an HTTP API.
    #[command(after_help = SAFE)]
    Http {
        /// Its OpenAPI document, as JSON or YAML.
        #[arg(long, value_name = "FILE")]
        openapi: PathBuf,
    },
    /// Two callers at once on one resource, in the sandbox.
    #[command(after_help = SAFE)]
    Concurrent {
        /// A command that sets up a place to try things in, and counts.
        #[arg(long, value_name = "CMD")]
        sandbox: String,
        /// The command that both callers run.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        words: Vec<String>,
    },
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    semel reconcile --outside charges.csv --on args.invoice=invoice,args.amount=amount\n  \
    semel reconcile --http https://api.stripe.com/v1/charges --bearer-env STRIPE_KEY \\\n      \
    --next starting_after=data[*].id --on body.amount=amount\n  \
    semel reconcile --postgres DATABASE_URL --query \"SELECT * FROM charges\" --on args.invoice=invoice\n  \
    semel reconcile --transcript session.jsonl --sqlite bank.db --query \"SELECT * FROM charges\" --on args.invoice=invoice\n  \
    semel reconcile --probe --transcript session.jsonl --action charge\n  \
    semel reconcile --intended jobs.jsonl --outside charges.csv --on invoice=invoice\n  \
    semel reconcile --usage completions_usage.csv\n  \
    semel reconcile bank                                as [reconcile.bank] in semel.toml says\n\n\
    Without --apply nothing is written. --apply records doubts that the outside decides, and needs a person.")]
pub struct ReconcileArgs {
    /// A comparison that the policy describes, as [reconcile.NAME].
    pub name: Option<String>,
    #[command(flatten)]
    pub outside: OutsideArgs,
    /// The query of --sqlite or --postgres.
    #[arg(long, value_name = "SQL", conflicts_with_all = ["outside", "command", "http", "probe", "usage"])]
    pub query: Option<String>,
    /// How a page of --http leads to the next, where it has no Link header: a parameter that takes a value of the body
    /// (the last of several), or the path of an address.
    #[arg(long, value_name = "[PARAMETER=]PATH", requires = "http")]
    pub next: Option<String>,
    /// The environment variable with the bearer token for --http.
    #[arg(long, value_name = "VARIABLE", requires = "http")]
    pub bearer_env: Option<String>,
    /// A header for --http, with the environment variable that holds its value. Without these options the URL gets
    /// the headers that semel.toml gives its origin.
    #[arg(long, value_name = "NAME=VARIABLE", requires = "http")]
    pub header_env: Vec<String>,
    /// Which argument equals which column. All of them together identify a row.
    #[arg(long, value_name = "ARGUMENT=COLUMN,…", required_unless_present_any = ["probe", "usage", "name"], conflicts_with_all = ["probe", "usage"])]
    pub on: Option<String>,
    /// Compare a file of intended actions, as CSV or JSON, instead of the ledger.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["action", "since", "apply", "transcript", "probe"])]
    pub intended: Option<PathBuf>,
    /// Compare the calls of a transcript, in any format that semel audit reads, instead of the ledger. With --probe it
    /// brings the arguments of the ledger's effects.
    #[arg(long, value_name = "PATH")]
    pub transcript: Option<PathBuf>,
    /// How the lines of the transcript are read, as in semel audit.
    #[arg(long, value_name = "NAME=PATH,…", requires = "transcript")]
    pub map: Option<String>,
    /// Only actions that contain this.
    #[arg(long, value_name = "TEXT")]
    pub action: Option<String>,
    /// Only effects of this tenant, whose rows the outside has.
    #[arg(long, conflicts_with_all = ["intended", "usage"])]
    pub tenant: Option<String>,
    /// Only effects younger than this.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub since: Option<Duration>,
    /// Record what became of effects in doubt, where the outside shows it.
    #[arg(long, requires = "reason")]
    pub apply: bool,
    /// Where the evidence comes from.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

// Where the rows come from.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub struct OutsideArgs {
    /// A table with a header, JSON lines, or a JSON listing.
    #[arg(long, value_name = "FILE")]
    pub outside: Option<PathBuf>,
    /// A command that prints one of these. Split as a shell would, run without one.
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,
    /// A listing over HTTP, read to its last page.
    #[arg(long, value_name = "URL")]
    pub http: Option<String>,
    /// An SQLite file, opened for reading alone.
    #[arg(long, value_name = "FILE", requires = "query")]
    pub sqlite: Option<PathBuf>,
    /// A PostgreSQL database, read by psql: its URL, or the environment variable that holds it.
    #[arg(long, value_name = "URL|VARIABLE", requires = "query")]
    pub postgres: Option<String>,
    /// The probe of each effect's own rule.
    #[arg(long)]
    pub probe: bool,
    /// A usage or cost export of OpenAI or Anthropic, compared with the ledger's model calls.
    #[arg(long, value_name = "EXPORT", conflicts_with_all = ["intended", "transcript", "apply", "action", "since"])]
    pub usage: Option<PathBuf>,
}

/// Not for people: the tool that agents of `semel eval` call.
pub const EVAL_WORLD: &str = "eval-world";

#[derive(Debug, Args)]
#[command(after_help = "Safe to repeat.\n\nExamples:\n  \
    semel eval                                          semel itself, at three doors\n  \
    semel eval --unguarded                              what happens without a guard\n  \
    semel eval --mcp \"other-guard --\"                  another guard before an MCP server\n  \
    semel eval --command \"other-guard --key {step} --\"\n  \
    semel eval --http http://127.0.0.1:9000/world --world 127.0.0.1:9001\n  \
    semel eval --door mcp --model NAME --endpoint http://127.0.0.1:8000/v1\n\n\
    Five numbers: what ran twice, what was lost, which repeats were wrongly suppressed, how often the agent was told the \
    truth, and how often something was looked at before it was sent again. All traffic but that with a model stays on this machine.")]
pub struct EvalArgs {
    /// Only these doors; all three unless given.
    #[arg(long, value_name = "DOOR", value_delimiter = ',', value_parser = eval_door())]
    pub door: Vec<EvalDoor>,
    /// No guard at all.
    #[arg(long, conflicts_with_all = ["command", "mcp", "http"])]
    pub unguarded: bool,
    /// The words of a guard before a command; {step} is the agent's name of the step, {state} a directory of its own.
    #[arg(long, value_name = "WORDS")]
    pub command: Option<String>,
    /// The words of a guard before the command of an MCP server; {state} as above.
    #[arg(long, value_name = "WORDS")]
    pub mcp: Option<String>,
    /// The address of a guard that passes requests on to the world.
    #[arg(long, value_name = "URL", requires = "world")]
    pub http: Option<String>,
    /// Where the world listens for the guard of --http.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen, requires = "http")]
    pub world: Option<std::net::SocketAddr>,
    /// A header of every request, for a guard that goes by keys; {step} is the agent's name of the step.
    #[arg(long, value_name = "NAME: VALUE", requires = "http")]
    pub header: Option<String>,
    /// A model as the agent, instead of the scripted ones.
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    pub model: Option<String>,
    /// Where the model is asked: the address before /chat/completions.
    #[arg(long, value_name = "URL", requires = "model")]
    pub endpoint: Option<String>,
    /// The environment variable that holds the key of the endpoint.
    #[arg(long, value_name = "VARIABLE", requires = "model")]
    pub key_env: Option<String>,
    /// Only scenarios whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Write the results as JUnit XML into this file.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct EvalWorldArgs {
    pub directory: PathBuf,
    /// Without a tool it serves MCP.
    pub tool: Option<String>,
    pub args: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    semel token create --scope agent --name ci --expires 30d\n  \
    semel token create --scope operator --tenant acme\n  \
    semel token list\n\n\
    Two tokens of one name are one principal: make the new one, give it out, then revoke the old one.")]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token. It is printed once; only its hash is kept.
    Create(TokenCreate),
    /// List the tokens that there are.
    #[command(after_help = SAFE)]
    List,
    /// Make a token worthless, within seconds and for good.
    Revoke(TokenRevoke),
}

#[derive(Debug, Args)]
pub struct TokenRevoke {
    /// Its id, as `semel token list` shows it.
    pub id: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
pub struct TokenCreate {
    /// What it may do: agents call tools, operators see and decide, admins make tokens.
    #[arg(long, value_name = "SCOPE")]
    pub scope: TokenScope,
    /// Whose effects it sees and makes; this machine's own unless given.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Whom it is for. It names the principal.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long it works; until it is revoked unless given.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub expires: Option<Duration>,
    #[command(flatten)]
    pub operator: OperatorArgs,
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenScope {
    Agent,
    Operator,
    Admin,
}

#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    pub command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Find errors in policy files, and what is probably not meant.
    #[command(after_help = SAFE)]
    Lint {
        /// Each is looked at alone; none means the files that hold here, together.
        files: Vec<PathBuf>,
    },
    /// Try the policy on its examples, on pairs of calls and on recorded calls. Nothing is sent.
    Test(PolicyTest),
    /// Write a policy for an MCP server or an HTTP API.
    Init(PolicyInit),
    /// Say which rule, class and key an action has, and why.
    Explain(PolicyExplain),
    /// List the HTTP APIs that are known, and what each does against duplicates by itself.
    #[command(after_help = SAFE)]
    Presets {
        /// One of them, with all that is known of it.
        name: Option<String>,
    },
    /// Show the JSON Schema of semel.toml.
    #[command(after_help = SAFE)]
    Schema,
}

#[derive(Debug, Args)]
#[command(after_help = "Safe to repeat.\n\nExamples:\n  \
    semel policy test\n  \
    semel policy test ~/.claude/projects\n  \
    semel policy test --against before.toml transcript.jsonl")]
pub struct PolicyTest {
    /// The policy before the change: say what would be treated differently.
    #[arg(long, value_name = "POLICY")]
    pub against: Option<PathBuf>,
    /// Transcripts that `semel audit` reads, lines of `semel ledger tail --json`, or pairs of calls (TOML).
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    semel policy init mcp --name billing -- npx -y some-server\n  \
    semel policy init http --name bank --openapi openapi.yaml")]
pub struct PolicyInit {
    #[command(subcommand)]
    pub of: PolicyInitOf,
}

#[derive(Debug, Subcommand)]
pub enum PolicyInitOf {
    /// For the tools of an MCP server.
    Mcp {
        /// The server's name in the policy.
        #[arg(long, value_name = "NAME", default_value = "server")]
        name: String,
        /// The file to write, which must not be there yet.
        #[arg(long, short, value_name = "FILE", default_value = "semel.toml")]
        output: PathBuf,
        /// The server's command.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        words: Vec<String>,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// For the operations of an HTTP API.
    Http {
        /// The API's name in the policy.
        #[arg(long, value_name = "NAME", default_value = "api")]
        name: String,
        /// Its OpenAPI document, as JSON or YAML.
        #[arg(long, value_name = "FILE")]
        openapi: PathBuf,
        /// The file to write, which must not be there yet.
        #[arg(long, short, value_name = "FILE", default_value = "semel.toml")]
        output: PathBuf,
        #[command(flatten)]
        change: ChangeArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct PolicyExplain {
    /// The action, such as mcp:github/create_issue. Not needed after `--`.
    #[arg(required_unless_present = "command")]
    pub action: Option<String>,
    /// Its arguments, as one JSON object.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// A command line, instead of an action.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct ExplainArgs {
    /// The code, or an exit status of `semel run`; none lists them all.
    pub code: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct DoctorArgs {
    /// Read every page of the ledger too.
    #[arg(long)]
    pub full: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct DemoArgs {
    /// Without pauses, for tests.
    #[arg(long)]
    pub fast: bool,
    #[command(subcommand)]
    pub part: Option<DemoPart>,
}

// The processes that the demo starts.
#[derive(Debug, Subcommand)]
pub enum DemoPart {
    /// The payment tool: one charge, or one question.
    #[command(hide = true)]
    Pay(DemoPay),
}

#[derive(Debug, Args)]
pub struct DemoPay {
    /// Where charges are written down, one line each.
    #[arg(long)]
    pub book: PathBuf,
    #[command(subcommand)]
    pub request: PayRequest,
}

/// Each field is an argument of its own, so that a rule can tell the order from the memo.
#[derive(Debug, Clone, Subcommand)]
pub enum PayRequest {
    /// Take money, in cents.
    Charge { order: String, amount: u64, memo: String },
    /// Exit 0 if there is such a charge, 1 if not, 2 if nobody knows.
    Find { order: String },
}

#[derive(Debug, Args)]
#[command(after_help = SAFE)]
pub struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh.
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Created if it is missing.
    pub directory: PathBuf,
    #[command(flatten)]
    pub change: ChangeArgs,
}
