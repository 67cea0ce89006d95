use crate::home::Home;

const RULE: &str = "version = 1\n\n[[rule]]\nmatch = \"mcp:billing/charge\"\nclass = \"consequential\"\nkey = [\"args.invoice\"]\nnormalize = { \"args.invoice\" = [\"trim\"] }\n";

#[test]
fn equal_arguments_have_one_key_and_long_numbers_keep_theirs() {
    let home = Home::new();
    let key = |args: &str| home.semel(["key", "fn:charge", "--args", args]).stdout;
    assert!(key("{\"a\":1}").starts_with("semel_"));
    assert_eq!(key("{\"a\": 1.0, \"b\": 2}"), key("{\"b\":2,\"a\":1}"));
    assert_ne!(key("{\"a\":9007199254740993}"), key("{\"a\":9007199254740992}"));
    for bad in ["{\"a\":1,\"a\":1}", "{", ""] {
        let refused = home.semel(["key", "fn:charge", "--args", bad]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{bad}");
    }
    assert_eq!(home.semel(["key", "charge", "--args", "{}"]).code, Some(2), "no door");
    let piped = home.semel_reading(["key", "fn:charge", "--args", "-"], b"{\"a\":1}");
    assert_eq!(piped.stdout, key("{\"a\":1}"));
}

#[test]
fn the_key_follows_the_rule_of_the_policy() {
    let home = Home::new();
    home.file("semel.toml", RULE);
    let key = |args: &str| home.json(["key", "mcp:billing/charge", "--args", args]);
    let one = key("{\"invoice\":\"1001\",\"note\":\"a\"}");
    assert_eq!(one["idempotency_key"], key("{\"invoice\":\" 1001 \",\"note\":\"b\"}")["idempotency_key"]);
    assert!(one["rule"].as_str().unwrap().ends_with("semel.toml:3"), "{one}");
    assert_eq!(one["intent_digest"].as_str().unwrap().len(), 64);
    let missing = home.semel(["key", "mcp:billing/charge", "--args", "{}"]);
    assert!(missing.stderr.contains("args.invoice"), "{missing:?}");
}

#[test]
fn the_key_of_a_command_is_that_of_its_run() {
    let home = Home::new();
    let cwd = home.work().canonicalize().unwrap();
    let args = serde_json::json!({"argv": ["echo", "a"], "cwd": cwd}).to_string();
    let key = home.json(["key", "cli:echo", "--args", &args]);
    let dry = home.json(["run", "--dry-run", "--", "echo", "a"]);
    assert_eq!(key["intent_digest"], dry["intent_digest"]);
}

#[test]
fn a_policy_with_errors_is_found_out() {
    let home = Home::new();
    let none = home.semel(["policy", "lint"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    home.file("semel.toml", RULE);
    assert_eq!(home.semel(["policy", "lint"]).code, Some(0));
    home.file("bad.toml", "version = 1\nmode = \"gard\"\n");
    let bad = home.semel(["policy", "lint", "bad.toml"]);
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.stdout.contains("bad.toml:2:8") && bad.stdout.contains("guard"), "{bad:?}");
    assert!(bad.stderr.contains("bad.toml: 1 error, 0 warnings, 0 notes"), "{bad:?}");
    let json = home.semel(["policy", "lint", "semel.toml", "bad.toml", "--json"]);
    assert_eq!((json.code, &json.json()["ok"]), (Some(1), &false.into()));
    assert_eq!(home.semel(["policy", "lint", "missing.toml"]).code, Some(2));
    let unusable = home.semel(["--policy", "bad.toml", "key", "fn:x", "--args", "{}"]);
    assert_eq!((unusable.code, unusable.stdout.as_str()), (Some(2), ""));
}

#[test]
fn an_address_that_cannot_be_meant_is_found_out_before_anything_is_served() {
    let home = Home::new();
    let check = |policy: &str| {
        home.file("semel.toml", policy);
        home.semel(["policy", "lint"])
    };
    for table in ["[upstream.a]\nurl", "[mcp.a]\nurl", "[serve]\notlp", "[notify]\nurl"] {
        let bare = check(&format!("{table} = \"api.example.com\"\n"));
        assert_eq!(bare.code, Some(1), "{table}: {bare:?}");
        for part in ["does not begin with https:// or http://", "write https://api.example.com"] {
            assert!(bare.stdout.contains(part), "{table}: {bare:?}");
        }
        let other = check(&format!("{table} = \"ftp://api.example.com\"\n"));
        assert!(other.stdout.contains("`ftp://` is not spoken here"), "{table}: {other:?}");
        assert_eq!(check(&format!("{table} = \"https://\"\n")).code, Some(1), "{table}");
        let good = check(&format!("{table} = \"https://api.example.com/x\"\n"));
        assert_eq!(good.code, Some(0), "{table}: {good:?}");
    }
}

#[test]
fn an_address_that_other_machines_reach_is_said_to_need_more() {
    let home = Home::new();
    let check = |serve: &str| {
        home.file("semel.toml", &format!("[serve]\nlisten = \"0.0.0.0:7777\"\n{serve}"));
        let ran = home.semel(["policy", "lint"]);
        assert_eq!(ran.code, Some(i32::from(!ran.stdout.is_empty())), "{ran:?}");
        ran.stdout
    };
    assert!(check("").contains("allow_remote = true under [serve]"));
    assert!(check("allow_remote = true\nrequire_token = false\n").contains("refuses it without tokens"));
    assert_eq!(check("allow_remote = true\n"), "");
    // What another file says counts as well.
    std::fs::create_dir_all(home.path().join(".config/semel")).expect("a directory");
    std::fs::write(home.path().join(".config/semel/semel.toml"), "[serve]\nallow_remote = true\n")
        .expect("a file");
    assert_eq!(check(""), "");
}

#[test]
fn the_policy_explains_its_choice() {
    let home = Home::new();
    home.file("semel.toml", RULE);
    let text = home.semel(["policy", "explain", "mcp:billing/charge", "--args", "{\"invoice\":1}"]).stdout;
    assert!(text.contains("semel.toml:3") && text.contains("args.invoice"), "{text}");
    let other = home.json(["policy", "explain", "mcp:github/list_issues"]);
    assert_eq!((&other["class"], &other["rule"]), (&"read".into(), &"default".into()));
    assert_eq!(other["earlier"][0]["match"], "mcp:billing/charge");
    // People are shown what is of the same door.
    let earlier = "match = \"mcp:billing/charge\" is another action";
    let of = |action: &str| home.semel(["policy", "explain", action]).stdout;
    assert!(of("mcp:github/list_issues").contains(earlier) && !of("fn:charge").contains(earlier));
    let command = home.semel(["policy", "explain", "--", "kubectl", "delete", "pod"]);
    assert!(command.stdout.contains("cli:kubectl"), "{command:?}");
    assert_eq!(home.semel(["policy", "explain"]).code, Some(2));
    let keyed = "[[rule]]\nmatch = \"cli:pay *\"\ninject = { flag = \"--key\", valid_for = \"1h\" }\n";
    home.file("semel.toml", keyed);
    let text = home.semel(["policy", "explain", "--", "pay", "now"]).stdout;
    assert!(
        text.contains("sent again under its key") && text.contains("timeout       5m of silence"),
        "{text}"
    );
}

#[test]
fn a_read_is_explained_by_what_is_true_of_reads() {
    let home = Home::new();
    let ran = home.semel(["policy", "explain", "mcp:github/list_issues"]);
    let expected = "action        mcp:github/list_issues\n\
        rule          default\n\
        class         read: its name begins with the read verb `list`\n\
        mode          guard\n\
        repeat        passes each time: a read is not held, recorded or answered from the record\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (expected, ""));
}

#[test]
fn a_pack_that_knows_the_action_is_named_until_it_is_included() {
    let home = Home::new();
    for (action, pack) in [
        ("mcp:github/create_issue", "github"),
        ("mcp:my-slack/slack_post_message", "slack"),
        ("mcp:notion/API-post-search", "notion"),
        ("http:POST api.stripe.com/v1/charges", "stripe"),
    ] {
        let ran = home.semel(["policy", "explain", action]);
        let hint =
            format!("hint: pack:{pack} has a rule for it: include = [\"pack:{pack}\"] in semel.toml\n");
        assert_eq!(ran.stderr, hint, "{action}");
        assert_eq!(home.json(["policy", "explain", action])["fitting_pack"], pack);
    }
    for action in ["mcp:code/create_issue", "mcp:github/no_such_tool", "mcp:github/list_issues", "fn:charge"]
    {
        let ran = home.semel(["policy", "explain", action]);
        assert_eq!(ran.stderr, "", "{action}");
    }
    home.file("semel.toml", "include = [\"pack:github\", \"pack:slack\"]\n");
    let ran = home.semel(["policy", "explain", "mcp:github/create_issue"]);
    assert!(ran.stderr.is_empty() && ran.stdout.contains("pack:github:"), "{ran:?}");
    // Of all the rules of packs only those are shown that know the tool.
    let ran = home.semel(["policy", "explain", "mcp:code/create_issue"]);
    let earlier = ran.stdout.lines().filter(|line| line.ends_with("is another action"));
    let earlier: Vec<&str> = earlier.collect();
    assert!(!earlier.is_empty() && earlier.iter().all(|line| line.contains("create_issue")), "{ran:?}");
    assert!(ran.stdout.lines().count() < 25, "{ran:?}");
}

#[test]
fn the_known_apis_say_what_they_do_against_duplicates() {
    let home = Home::new();
    let listed = home.json(["policy", "presets"]);
    let helps = |name: &str| {
        let items = listed["items"].as_array().unwrap();
        items.iter().find(|item| item["name"] == name).map(|item| item["helps"].as_str().unwrap().to_owned())
    };
    assert_eq!(helps("stripe").as_deref(), Some("key"));
    assert_eq!(helps("linear").as_deref(), Some("client_id"));
    assert_eq!(helps("paypal").as_deref(), Some("partly"));
    assert_eq!(helps("twilio").as_deref(), Some("nothing"));
    assert_eq!(helps("git"), None, "no API");
    let text = home.semel(["policy", "presets"]).stdout;
    assert!(text.lines().any(|line| line.starts_with("slack ") && line.contains("nothing")), "{text}");
    let one = home.semel(["policy", "presets", "paypal"]).stdout;
    assert!(one.contains("PayPal-Request-Id") && one.contains("api-m.sandbox.paypal.com"), "{one}");
    let typo = home.semel(["policy", "presets", "strpe"]);
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("did you mean stripe?"), "{typo:?}");
}

#[test]
fn a_request_is_explained_by_its_body_or_by_all_of_its_parts() {
    let home = Home::new();
    home.file("semel.toml", "[upstream.pay]\nurl = \"http://127.0.0.1:9\"\npreset = \"stripe\"\n");
    let charge = "http:POST api.stripe.com/v1/charges";
    let explain = |action: &str, args: &str| home.json(["policy", "explain", action, "--args", args]);
    let body = explain(charge, r#"{"amount": "1", "metadata[order]": "7"}"#);
    let parts = explain(charge, r#"{"body": {"amount": "1", "metadata[order]": "7"}, "query": {}}"#);
    assert_eq!(body, parts);
    assert_eq!((&body["class"], &body["tier"]), (&"consequential".into(), &"keyed".into()));
    assert!(body["rule"].as_str().unwrap().starts_with("pack:stripe:"), "{body}");
    let bare = explain(charge, r#"{"amount": "1"}"#);
    assert_eq!((&body["window"], &bare["window"]), (&serde_json::Value::Null, &"1h".into()));
    let capture = explain("http:POST api.stripe.com/v1/invoices/in_1/send", "{}");
    assert_eq!(capture["identity"]["missing"], serde_json::json!([]), "the path is known: {capture}");
}

#[test]
fn an_address_that_is_not_served_does_not_pass_the_check() {
    let home = Home::new();
    for url in ["http://2130706433:1", "http://0x7f000001:1", "http://127.1:1", "http://0177.0.0.1:1"] {
        home.file("semel.toml", &format!("[upstream.a]\nurl = \"{url}\"\n"));
        let (checked, served) = (home.semel(["policy", "lint"]), home.semel(["serve"]));
        assert_eq!((checked.code, served.code), (Some(1), Some(2)), "{url}: {checked:?} {served:?}");
        for said in [checked.stdout, served.stderr] {
            assert!(said.contains("number in disguise"), "{url}: {said}");
        }
    }
}

#[test]
fn codes_are_explained_in_any_spelling_and_by_exit_status() {
    let home = Home::new();
    let page = home.semel(["explain", "in_doubt"]).stdout;
    assert!(page.starts_with("# in_doubt"), "{page}");
    for spelling in ["in-doubt", "IN_DOUBT", "121"] {
        assert_eq!(home.semel(["explain", spelling]).stdout, page, "{spelling}");
    }
    let several = home.json(["explain", "120"]);
    assert_eq!(several["items"].as_array().unwrap().len(), 8);
    assert_eq!(home.json(["explain"])["items"].as_array().unwrap().len(), 15);
    let typo = home.semel(["explain", "in_dobut"]);
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("did you mean in_doubt?"), "{typo:?}");
    assert_eq!(home.semel(["explain", "3"]).code, Some(2));
}
