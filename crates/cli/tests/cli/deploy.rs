//! The files below `deploy/`: each is read, rendered or started by the program that it is for.

use crate::home::{Home, Ran};
use crate::mcp::peers::installed;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::redis_server::RedisServer;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn deploy(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a root");
    root.join("deploy").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(deploy(name)).expect("it is text")
}

fn ran(command: &mut Command) -> Ran {
    Ran::of(command.output().unwrap_or_else(|error| panic!("{command:?}, of `cargo xtask test`: {error}")))
}

fn works(command: &mut Command) -> String {
    let ran = ran(command);
    assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
    ran.stdout
}

/// A program of the peers for these tests.
fn peer(name: &str) -> Command {
    Command::new(installed("deploy").join("python/bin").join(name))
}

/// All documents of a YAML file.
fn yaml(home: &Home, text: &str) -> Vec<Value> {
    let file = home.file("read.yaml", text);
    let script = "import json,sys,yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let documents = works(peer("python").args(["-c", script]).arg(file));
    serde_json::from_str::<Vec<Value>>(&documents)
        .expect("JSON")
        .into_iter()
        .filter(|d| !d.is_null())
        .collect()
}

// --- Helm

fn helm(settings: &[&str]) -> Ran {
    let sets = settings.iter().flat_map(|setting| ["--set", setting]);
    ran(peer("helm").args(["template", "r", "--namespace", "agents"]).arg(deploy("helm/semel")).args(sets))
}

const ON_SERVER: [&str; 5] = [
    "ledger.existingSecret=ledger",
    "replicas=3",
    "tls.existingSecret=tls",
    "serveToken.existingSecret=token",
    "envFrom[0].secretRef.name=upstreams",
];

#[test]
fn the_chart_renders_to_what_kubernetes_takes() {
    let home = Home::new();
    works(peer("helm").arg("lint").arg("--strict").arg(deploy("helm/semel")));
    for settings in [&[][..], &ON_SERVER, &["ledger.existingSecret=l", "persistence.enabled=false"]] {
        let rendered = helm(settings);
        assert_eq!(rendered.code, Some(0), "{rendered:?}");
        let file = home.file("rendered.yaml", &rendered.stdout);
        for version in ["1.29", "1.37"] {
            works(peer("kubernetes-validate").args(["--strict", "-k", version]).arg(&file));
        }
    }
    let broken = helm(&[]).stdout.replace("serviceName:", "serviceNam:");
    let file = home.file("rendered.yaml", &broken);
    assert_ne!(ran(peer("kubernetes-validate").args(["--strict", "-k", "1.29"]).arg(file)).code, Some(0));
}

#[test]
fn the_chart_refuses_several_replicas_on_sqlite_and_other_mistakes() {
    for (settings, words) in [
        (&["replicas=2"][..], "the ledger is SQLite"),
        (&["persistence.enabled=false"], "would be lost with the pod"),
        (&["replicas=0"], "replicas"),
        (&["replica=2"], "replica"),
        (&["metrics=everybody"], "metrics"),
        (&["ledger.url=postgres://me:secret@db/x"], "url"),
    ] {
        let refused = helm(settings);
        assert_ne!(refused.code, Some(0), "{settings:?}");
        assert!(refused.stdout.is_empty() && refused.stderr.contains(words), "{refused:?}");
    }
}

/// The pod of a rendered chart.
fn stateful_set(documents: &[Value]) -> &Value {
    documents.iter().find(|document| document["kind"] == "StatefulSet").expect("a stateful set")
}

#[test]
fn a_pod_has_a_state_directory_of_its_own_and_time_to_settle() {
    let home = Home::new();
    let documents = yaml(&home, &helm(&ON_SERVER).stdout);
    let set = &stateful_set(&documents)["spec"];
    let pod = &set["template"]["spec"];
    assert_eq!(set["volumeClaimTemplates"][0]["metadata"]["name"], "state", "{set}");
    assert!(pod["terminationGracePeriodSeconds"].as_u64() > Some(25 + 5), "{pod}");
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez");
    let all = container.to_string();
    assert!(!container["args"].to_string().contains("ledger"), "no address is an argument: {all}");
    assert!(documents.iter().any(|document| document["kind"] == "PodDisruptionBudget"));
    // On SQLite there is one claim, and not one for each pod.
    let documents = yaml(&home, &helm(&[]).stdout);
    assert!(stateful_set(&documents)["spec"]["volumeClaimTemplates"].is_null());
    assert!(documents.iter().any(|document| document["kind"] == "PersistentVolumeClaim"));
}

/// Lays the files of the rendered chart where the pod would have them.
fn lay_out(home: &Home, settings: &[&str]) -> (PathBuf, PathBuf) {
    let documents = yaml(home, &helm(settings).stdout);
    let data = documents.iter().find(|document| document["kind"] == "ConfigMap").expect("a config map");
    let place = |key: &str| {
        let directory = home.path().join(key);
        fs::create_dir_all(&directory).expect("a directory");
        let content = data["data"][key].as_str().expect("a file");
        fs::write(directory.join("semel.toml"), content).expect("a file");
        directory
    };
    (place("policy.toml"), place("chart.toml"))
}

#[test]
fn semel_serves_with_the_files_of_the_chart() {
    let (home, server) = (Home::new(), RedisServer::start(&[]));
    let settings = ["ledger.existingSecret=ledger", "replicas=2", "allowedHosts={semel.example.com}"];
    let (policy, chart) = lay_out(&home, &settings);
    let config = chart.join("semel.toml").display().to_string();
    // A secret made from a file.
    let url = format!("{}\n", server.url());
    let variables = [("SEMEL_CONFIG", config.as_str()), ("SEMEL_SHARED_LEDGER", "1"), ("SEMEL_LEDGER", &url)];
    let served = Served::start_in(&home, &policy, &variables);
    let ready =
        |host: &str| served.ask_raw("GET /readyz HTTP/1.1", &format!("Host: {host}\r\n"), "").answer().status;
    for host in ["r-semel", "r-semel.agents.svc:7777", "semel.example.com"] {
        assert_eq!(ready(host), 200, "{host}");
    }
    assert_eq!(ready("evil.example.com"), 403);
    assert!(!home.state().join("ledger.db").exists());
}

#[test]
fn a_pod_whose_secret_is_empty_or_wrong_begins_no_ledger_of_its_own() {
    let home = Home::new();
    let serve = |ledger: &str| {
        let mut command = home.command(["serve", "--listen", "127.0.0.1:0"]);
        command.env("SEMEL_LEDGER", ledger).env("SEMEL_SHARED_LEDGER", "1").env("SEMEL_SERVE_TOKEN", TOKEN);
        Ran::of(command.output().expect("it starts"))
    };
    for (ledger, words) in [
        ("", "SEMEL_LEDGER is set and empty"),
        ("\n", "SEMEL_LEDGER is set and empty"),
        ("sqlite:/tmp/ledger.db", "no other host shares"),
        ("redis://:s3cret@127.0.0.1:1", "refused"),
    ] {
        let refused = serve(ledger);
        assert!(matches!(refused.code, Some(1..)), "{refused:?}");
        assert!(refused.stderr.contains(words) && refused.stderr.contains("nothing was sent"), "{refused:?}");
        assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
    }
    let run = Ran::of(
        home.command(["run", "--", "true"]).env("SEMEL_SHARED_LEDGER", "1").output().expect("it starts"),
    );
    assert_eq!(run.code, Some(125), "{run:?}");
    assert!(!home.state().join("ledger.db").exists());
}

// --- Compose and the image

fn compose(variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new("docker-compose");
    command.arg("-f").arg(deploy("compose.yaml")).arg("config").env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").envs(variables.iter().copied());
    ran(command.current_dir("/"))
}

#[test]
fn compose_reads_its_file_and_refuses_it_without_secrets() {
    let home = Home::new();
    assert!(!deploy(".env").exists(), "this test is for those who have none");
    let missing = compose(&[]);
    assert!(missing.code != Some(0) && missing.stderr.contains("put it into .env"), "{missing:?}");
    let read = compose(&[("POSTGRES_PASSWORD", "pg-s3cret"), ("SEMEL_SERVE_TOKEN", "token-s3cret")]);
    assert_eq!(read.code, Some(0), "{read:?}");
    let services = &yaml(&home, &read.stdout)[0]["services"];
    let semel = &services["semel"];
    assert_eq!(semel["environment"]["SEMEL_SHARED_LEDGER"], "1");
    assert!(semel["stop_grace_period"] == "40s" && semel["read_only"] == true, "{semel}");
    for service in ["semel", "postgres"] {
        assert!(services[service]["healthcheck"]["test"].is_array(), "{services}");
        for seen in ["command", "entrypoint", "healthcheck", "build", "labels"] {
            assert!(!services[service][seen].to_string().contains("s3cret"), "{service} {seen}");
        }
    }
    let address = semel["environment"]["SEMEL_LEDGER"].as_str().expect("an address");
    let ran = Ran::of(home.command(["doctor"]).env("SEMEL_LEDGER", address).output().expect("it starts"));
    // The host is known to Compose alone; the address is one that semel understands.
    assert!(ran.stdout.contains("postgres") && !ran.stdout.contains("no PostgreSQL URL"), "{ran:?}");
    assert!(!ran.stdout.contains("pg-s3cret"), "{ran:?}");
    let example = text(".env.example");
    for name in ["POSTGRES_PASSWORD=", "SEMEL_SERVE_TOKEN="] {
        assert!(example.lines().any(|line| line == name), "{name}");
    }
}

#[test]
fn the_image_is_built_from_files_that_are_there_and_its_policy_serves() {
    let file = text("Dockerfile");
    let root = deploy("..");
    let pinned = fs::read_to_string(root.join("rust-toolchain.toml")).expect("it is there");
    let channel = pinned.lines().find_map(|line| line.strip_prefix("channel = ")).expect("a channel");
    assert!(file.contains(&format!("FROM rust:{}-", channel.trim_matches('"'))), "the pinned toolchain");
    for copied in file.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from=")) {
        let source = copied.split(' ').nth(1).expect("a source");
        assert!(root.join(source).exists(), "{copied}");
    }
    let home = Home::new();
    let served = Served::start(&home, &text("semel.toml"));
    let ready = served.ask_raw("GET /readyz HTTP/1.1", "Host: semel:7777\r\n", "").answer();
    assert_eq!(ready.status, 200, "{ready:?}");
}

// --- Monitoring

/// PromQL of the dashboard, with Grafana's own variables filled in.
fn dashboard_expressions() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(&text("monitoring/grafana-dashboard.json")).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    targets
        .map(|target| target["expr"].as_str().expect("an expression"))
        .map(|expression| expression.replace("$__rate_interval", "5m").replace("$instance", ".*"))
        .collect()
}

/// Names of semel's metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("semel_")).collect()
}

#[test]
fn the_alerts_fire_when_they_should_and_the_dashboard_asks_what_prometheus_understands() {
    let home = Home::new();
    works(Command::new("promtool").args(["check", "rules"]).arg(deploy("monitoring/alerts.yaml")));
    works(Command::new("promtool").args(["test", "rules"]).arg(deploy("monitoring/alerts.test.yaml")));
    // An alert that never fires is found.
    let sick = text("monitoring/alerts.yaml").replace("semel_ledger_ready == 0", "semel_ledger_ready == 2");
    home.file("alerts.yaml", &sick);
    let test = home.file("alerts.test.yaml", &text("monitoring/alerts.test.yaml"));
    assert_ne!(ran(Command::new("promtool").args(["test", "rules"]).arg(test)).code, Some(0));
    let rule = |(n, expression): (usize, &String)| serde_json::json!({"record": format!("panel:{n}"), "expr": expression});
    let rules: Vec<Value> = dashboard_expressions().iter().enumerate().map(rule).collect();
    assert!(rules.len() > 15, "{rules:?}");
    let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let file = home.file("dashboard.yaml", &groups.to_string());
    works(Command::new("promtool").args(["check", "rules"]).arg(file));
}

#[test]
fn every_metric_of_dashboard_and_alerts_is_one_that_a_server_has() {
    let home = Home::new();
    let served = Served::start(&home, "[serve]\nmetrics = \"open\"\n");
    let scraped = served.ask_raw("GET /metrics HTTP/1.1", "", "").answer().body;
    let there: BTreeSet<&str> = metrics_in(&scraped);
    let expressions = dashboard_expressions().join("\n");
    let asked = [expressions, text("monitoring/alerts.yaml"), text("monitoring/alerts.test.yaml")].join("\n");
    let missing: Vec<&str> = metrics_in(&asked).difference(&there).copied().collect();
    assert!(missing.is_empty(), "{missing:?} of\n{scraped}");
    assert!(scraped.contains("semel_ledger_ready 1\n"), "{scraped}");
    assert!(scraped.contains("semel_ledger_engine{engine=\"sqlite\"} 1\n"), "{scraped}");
    // All that the page of the operator names is there too.
    let page = fs::read_to_string(deploy("../docs/operate.md")).expect("a page");
    let named: BTreeSet<&str> = metrics_in(&page).into_iter().filter(|name| !name.ends_with('_')).collect();
    let plain = |name: &&&str| !there.contains(**name) && !there.iter().any(|one| one.starts_with(**name));
    let missing: Vec<&&str> = named.iter().filter(plain).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_server_without_its_ledger_says_so_in_its_metrics() {
    let home = Home::new();
    let served = Served::start(&home, "[serve]\nmetrics = \"open\"\n");
    let file = home.state().join("ledger.db");
    fs::rename(&file, home.state().join("away.db")).expect("it is there");
    home.wait_until("the metrics say that it is gone", || {
        let scraped = served.ask_raw("GET /metrics HTTP/1.1", "", "").answer().body;
        scraped.contains("semel_ledger_ready 0\n")
    });
}
