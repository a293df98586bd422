//! The server as a process: kills in the middle of edits, slow clients, a clean end.

mod common;

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{Place, Server};
use serde_json::json;

/// What the graph says of marks.
trait Marks {
    fn marks(&self) -> BTreeSet<String>;
}

impl Marks for Server {
    /// What `marks` says, of all entities named `mark …`.
    fn marks(&self) -> BTreeSet<String> {
        let (status, around) = self.send("GET", "/api/v1/neighbourhood?entity=Portugal&limit=300", "");
        assert_eq!(status, 200);
        let triples = around["triples"].as_array().unwrap().iter();
        let marks = triples.filter(|t| t[1] == "mark").map(|t| t[2].as_str().unwrap().to_string());
        marks.collect()
    }
}

/// A hundred kills (SIGKILL) at moments that wander over the time an edit takes. After each: every acknowledged edit is there;
/// of the one in flight both triples or none; nothing else.
#[test]
fn acknowledged_edits_survive_a_hundred_kills() {
    let place = Place::new();
    let mut kept: BTreeSet<String> = BTreeSet::new();
    let (mut in_flight, mut in_flight_kept, mut acknowledged) = (0, 0, 0);
    for round in 0..100 {
        let server = Server::start(&place);
        assert_eq!(server.marks(), kept, "round {round}");
        let process = server.child.id().to_string();
        // Edits one after another: two new marks each, and the older of them gone again, so that removals are tested too.
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(10_000 + 1_731 * round % 40_000));
            std::process::Command::new("kill").args(["-KILL", &process]).status().unwrap();
        });
        for i in 0.. {
            let [a, b] = ["a", "b"].map(|n| format!("{round}.{i}.{n}"));
            let gone: Vec<String> = kept.iter().take(2).cloned().collect();
            let triple = |m: &String| json!(["Portugal", "mark", m]);
            let body = json!({
                "add": [triple(&a), triple(&b)],
                "remove": gone.iter().map(triple).collect::<Vec<_>>(),
            });
            let after: BTreeSet<String> =
                kept.iter().filter(|m| !gone.contains(m)).cloned().chain([a.clone(), b.clone()]).collect();
            match server.try_send("POST", "/api/v1/triples", &body.to_string()) {
                Some((200, _)) => {
                    kept = after;
                    acknowledged += 1;
                }
                _ => {
                    in_flight += 1;
                    killer.join().unwrap();
                    drop(server);
                    // Not acknowledged: it may have reached the disk, then whole.
                    let again = Server::start(&place);
                    let found = again.marks();
                    assert!(found == kept || found == after, "round {round}: {found:?}\nnot {kept:?}\nnor {after:?}");
                    in_flight_kept += usize::from(found == after);
                    kept = found;
                    break;
                }
            }
        }
    }
    eprintln!("{acknowledged} acknowledged, {in_flight} in flight, {in_flight_kept} of them kept");
    assert!(acknowledged > 50 && in_flight == 100);
}

#[test]
fn ends_cleanly_and_outlasts_slow_clients() {
    let place = Place::new();
    let mut server = Server::start(&place);
    // A client that begins a request and falls silent does not keep others waiting.
    let mut slow = TcpStream::connect(&server.address).unwrap();
    slow.write_all(b"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let ask = json!({"query": ["Portugal", "borders", "?"], "walks": 2}).to_string();
    assert_eq!(server.send("POST", "/api/v1/predict", &ask).0, 200);
    assert_eq!(server.send("GET", "/nothing", "").0, 404);
    // And is told to go: the server closes the connection, after ten seconds, and this side does not give up first.
    slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut rest = Vec::new();
    let ended = slow.read_to_end(&mut rest).map_err(|e| e.kind());
    assert!(!matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{ended:?}");
    // Terminated, it ends by itself with status 0.
    let ended = std::process::Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(ended.success());
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            break status;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "still running");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
}

/// A program of another user on this machine, as a proxy is one, changes nothing without a token, whatever it sends.
#[test]
#[cfg(target_os = "linux")]
fn another_users_program_is_not_trusted() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: only root can run a program as another user");
        return;
    }
    let place = Place::new();
    let server = Server::start(&place);
    let body = r#"{"add": [["a", "b", "c"]]}"#;
    let (host, port) = server.address.split_once(':').unwrap();
    let request = |version: &str| {
        format!(
            "POST /api/v1/triples HTTP/{version}\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            server.address,
            body.len()
        )
    };
    // Bash opens the connection, under another user id.
    let send = |user: u32, version: &str| {
        let script = format!("exec 3<>/dev/tcp/{host}/{port}; printf %s \"$1\" >&3; cat <&3");
        let mut bash = std::process::Command::new("bash");
        let out = bash.args(["-c", &script, "bash", &request(version)]).current_dir("/").uid(user).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let refused = send(65534, "1.1");
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("another user's program"), "{refused}");
    // As nginx sends it by default, even from the same user.
    let old = send(0, "1.0");
    assert!(old.starts_with("HTTP/1.0 403 ") && old.contains("read_only"), "{old}");
    let direct = send(0, "1.1");
    assert!(direct.starts_with("HTTP/1.1 200 "), "{direct}");
}

#[test]
fn one_client_has_so_many_connections() {
    let place = Place::new();
    let server = Server::start_with(&place, &["--connections-per-client", "2"]);
    let held: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    // Accepted in their order, so the third is one too many.
    let mut third = TcpStream::connect(&server.address).unwrap();
    third.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = String::new();
    let _ = third.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.contains("\"code\":\"busy\""), "{answer}");
    drop(held);
    let begin = Instant::now();
    while server.try_send("GET", "/api/v1/health", "").is_none_or(|(status, _)| status != 200) {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn two_servers_do_not_share_one_file_of_edits() {
    let place = Place::new();
    let first = Server::start(&place);
    assert_eq!(first.send("POST", "/api/v1/triples", r#"{"add": [["a", "b", "c"]]}"#).0, 200);
    let ran = place.run(&["serve", "world.tsv", "--listen", "127.0.0.1:0", "--model", "entity.safetensors"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("world.tsv.edits: ") && ran.err.contains("another server has it open"), "{}", ran.err);
    drop(first);
    // Nor does another graph take it, unless it is told to: then the edits are its own.
    place.write("world.tsv", format!("{}Rome\tcapital_of\tItaly\n", common::WORLD));
    let serve = ["serve", "world.tsv", "--listen", "203.0.113.7:1", "--model", "entity.safetensors"];
    let ran = place.run(&serve);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("made on another graph") && ran.err.contains("--adopt-edits"), "{}", ran.err);
    let ran = place.run(&[&serve[..], &["--adopt-edits"]].concat());
    assert!(ran.err.contains("warning: ") && ran.err.contains("are applied to this one"), "{}", ran.err);
    let ran = place.run(&["serve", "world.tsv", "--listen", "203.0.113.7:1", "--model", "entity.safetensors"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("cannot listen on 203.0.113.7:1"), "{}", ran.err);
}
