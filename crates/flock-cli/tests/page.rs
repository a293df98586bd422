//! The page in a real browser, headless: asking, streaming, reasons, missing links, scores, edits, files and their columns, addresses,
//! labels, hostile names, small screens.
//!
//! Needs Debian's `chromium` and `chromium-driver`, which `.ci/browser` installs; without them the test says so and passes. With
//! FLOCK_SCREENSHOTS=DIR pictures are left there.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Place;
use serde_json::{Value, json};

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(place: &Place, args: &[&str]) -> (Process, String) {
    let args = [&["serve"], args, &["--listen", "127.0.0.1:0"]].concat();
    let mut child = place.command(&args).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|l| l.strip_prefix("listening on ").and_then(|l| l.split(' ').next()).map(str::to_string));
    (Process(child), address.unwrap())
}

/// A browser, spoken to in the WebDriver protocol.
struct Browser {
    _driver: Process,
    port: u16,
    session: String,
}

impl Browser {
    fn start() -> Option<Browser> {
        let mut child = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().ok()?;
        let lines = BufReader::new(child.stdout.take()?).lines();
        let port = lines.map_while(Result::ok).find_map(|l| {
            let port = l.split("started successfully on port ").nth(1)?;
            port.trim_end_matches('.').parse().ok()
        })?;
        let mut browser = Browser { _driver: Process(child), port, session: String::new() };
        let args =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1360,1000"];
        let wanted =
            json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": args}}}});
        let session = browser.call("POST", "/session", &wanted);
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap_or_else(|| panic!("{session}")));
        Some(browser)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        // The driver keeps connections open, so the answer ends where its length says.
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).unwrap();
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut text = vec![0; length];
        answer.read_exact(&mut text).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert!(value["value"]["error"].is_null(), "{path} {body}: {}", value["value"]);
        value["value"].clone()
    }

    fn go(&self, url: &str) {
        self.call("POST", &format!("{}/url", self.session), &json!({ "url": url }));
    }

    /// The value of an expression in the page.
    fn eval(&self, expression: &str) -> Value {
        let script = json!({"script": format!("return ({expression})"), "args": []});
        self.call("POST", &format!("{}/execute/sync", self.session), &script)
    }

    /// Waits until an expression is true.
    fn wait(&self, expression: &str) {
        let begin = Instant::now();
        while self.eval(&format!("!!({expression})")) != true {
            if begin.elapsed() > Duration::from_secs(180) {
                self.screenshot("failed");
                panic!("{expression}\n{}", self.eval("document.body.innerText"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn find(&self, css: &str) -> String {
        let found =
            self.call("POST", &format!("{}/element", self.session), &json!({"using": "css selector", "value": css}));
        found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_string()
    }

    fn click(&self, css: &str) {
        self.call("POST", &format!("{}/element/{}/click", self.session, self.find(css)), &json!({}));
    }

    /// Types into an element, as keys.
    fn keys(&self, css: &str, text: &str) {
        self.call("POST", &format!("{}/element/{}/value", self.session, self.find(css)), &json!({ "text": text }));
    }

    fn fill(&self, css: &str, text: &str) {
        self.eval(&format!("document.querySelector('{css}').value = ''"));
        self.keys(css, text);
    }

    fn size(&self, width: u32, height: u32) {
        self.call("POST", &format!("{}/window/rect", self.session), &json!({"width": width, "height": height}));
    }

    /// A screen of this size, which may be narrower than any window.
    fn device(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let command = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics});
        self.call("POST", &format!("{}/goog/cdp/execute", self.session), &command);
    }

    fn screenshot(&self, name: &str) {
        let Some(dir) = std::env::var_os("FLOCK_SCREENSHOTS") else { return };
        let png = self.call("GET", &format!("{}/screenshot", self.session), &json!({}));
        let path = std::path::Path::new(&dir).join(format!("{name}.png"));
        std::fs::write(path, base64(png.as_str().unwrap())).unwrap();
    }

    /// Drops a file with this text on the page.
    fn drop_file(&self, name: &str, text: &str) {
        self.eval(&format!(
            "(() => {{ const files = new DataTransfer(); files.items.add(new File([{}], {})); \
             dispatchEvent(new DragEvent('drop', {{dataTransfer: files, cancelable: true}})); return 1; }})()",
            json!(text),
            json!(name)
        ));
    }

    /// The text of an element.
    fn text(&self, id: &str) -> String {
        self.eval(&format!("document.getElementById('{id}').textContent")).as_str().unwrap().to_string()
    }

    fn reload(&self) {
        self.call("POST", &format!("{}/refresh", self.session), &json!({}));
    }

    fn back(&self) {
        self.call("POST", &format!("{}/back", self.session), &json!({}));
    }

    /// Catches what is copied as `copied`, and what is saved as `saved`.
    fn catch_files(&self) {
        self.eval(
            "(Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.copied = t; }}}), \
             URL.createObjectURL = (b) => { b.text().then((t) => { window.saved = t; }); return '#'; }, 1)",
        );
    }

    /// The lines of the file that a button saves.
    fn saved(&self, button: &str) -> String {
        self.eval("(window.saved = null, 1)");
        self.click(button);
        self.wait("window.saved");
        self.eval("saved").as_str().unwrap().to_string()
    }

    /// Waits for the reasons of what is chosen.
    fn explained(&self) {
        self.wait(
            "document.querySelectorAll('#reasons li').length > 0 || /No walk/.test(document.getElementById('share').textContent)",
        );
    }

    fn settled(&self) {
        self.wait("/answers? after \\d+ pass/.test(document.getElementById('status').textContent)");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.call("DELETE", &self.session, &json!({}));
        }
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bits, mut count, mut out) = (0u32, 0, Vec::new());
    for d in text.bytes().filter_map(digit) {
        bits = bits << 6 | u32::from(d);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

/// A graph of 241 entities.
fn hub() -> String {
    (0..240).map(|i| format!("hub\thas\tleaf {i}\nleaf {i}\tnext\tleaf {}\n", (i + 1) % 240)).collect()
}

const HOSTILE: &str = "<img src=x onerror=window.hacked=1>";

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let place = Place::new();
    let graph = format!(
        "{}{HOSTILE}\tin\tEurope\n\"'\u{202e}&lt;b>\t</script><script>window.hacked=1</script>\tSpain\n",
        common::WORLD
    );
    place.write("world.tsv", graph);
    let models = ["world.tsv", "--model", "entity.safetensors", "--model", "relation.safetensors"];
    let (_server, address) = serve(&place, &models);
    browser.go(&address);

    // The first visit: what the graph is, examples, no answers yet.
    browser.wait("document.querySelectorAll('#examples button').length === 3");
    assert!(
        browser
            .eval("document.getElementById('about').textContent")
            .as_str()
            .unwrap()
            .contains("world.tsv: 12 entities")
    );
    assert_eq!(browser.eval("document.querySelectorAll('#answers tbody tr').length"), 0);

    // Ask an example: the table fills and refines while passes stream in.
    browser.eval(
        "(window.seen = [], new MutationObserver(() => seen.push(document.getElementById('status').textContent))\
         .observe(document.getElementById('status'), {childList: true, characterData: true, subtree: true}), 1)",
    );
    browser.click("#examples button");
    browser.settled();
    assert_eq!(browser.eval("document.getElementById('head').value"), "Portugal");
    let streamed = browser.eval("new Set(seen.filter((t) => t.startsWith('pass '))).size");
    assert!(streamed.as_u64().unwrap() >= 2, "{}", browser.eval("seen"));
    assert!(browser.eval("document.querySelectorAll('#answers tbody tr').length").as_u64().unwrap() >= 5);
    assert!(browser.eval("document.querySelectorAll('#answers .bar u').length").as_u64().unwrap() >= 5);
    assert!(browser.eval("document.querySelectorAll('#answers small').length").as_u64().unwrap() >= 1);

    // What the graph has is in a group of its own, folded and counted.
    assert_eq!(browser.eval("document.querySelector('#answers button[data-name=Spain]')"), Value::Null);
    assert_eq!(browser.text("known-title"), "1 known answer: the graph has it already");
    browser.click("#known summary");
    // Choose an answer: its reasons in words and in the picture.
    browser.wait("document.querySelector('#known-answers button[data-name=Spain]')");
    browser.click("#known-answers button[data-name=Spain]");
    browser.wait("document.querySelectorAll('#reasons li').length > 0 && document.getElementById('why-title').textContent === 'Reasons for Spain'");
    browser.wait("Number(document.getElementById('picture').dataset.evidence) >= 2");
    assert!(browser.eval("flockPicture.$('edge.evidence').length").as_u64().unwrap() >= 1);
    assert_eq!(browser.eval("flockPicture.$('node.answer').map((n) => n.data('name'))"), json!(["Spain"]));
    // Only the paths are drawn, and their names are as large on the screen as elsewhere, at any zoom.
    assert_eq!(browser.eval("flockPicture.edges().length === flockPicture.$('edge.evidence').length"), true);
    browser.eval("(flockPicture.zoom(0.3), 1)");
    let smallest =
        "Math.min(...flockPicture.nodes().map((n) => parseFloat(n.style('font-size')) * flockPicture.zoom()))";
    assert!(browser.eval(smallest).as_f64().unwrap() >= 12.0, "{}", browser.eval(smallest));
    browser.click("#fit");
    // The spread is beside the number, not across it.
    let crossed = "[...document.querySelectorAll('#answers tbody tr')].some((r) => { const [b, u] = ['b', 'u'].map((t) => \
                   r.querySelector(t).getBoundingClientRect()); return u.left < b.right && u.right > b.left; })";
    assert_eq!(browser.eval(crossed), false);
    browser.click("#check");
    browser.wait("/the logit falls by/.test(document.getElementById('deletion').textContent)");
    browser.screenshot("light");

    // Completion by keyboard: type, arrow, enter; then enter asks.
    browser.eval("document.getElementById('tail').value = ''");
    browser.fill("#head", "lisb");
    browser.wait("document.querySelectorAll('#head-list [role=option]').length > 0");
    browser.keys("#head", "\u{e015}\u{e007}");
    assert_eq!(browser.eval("document.getElementById('head').value"), "Lisbon");
    browser.fill("#relation", "capital_of");
    browser.keys("#relation", "\u{e00c}\u{e007}");
    browser.wait("document.querySelector('#answers tbody') && document.title && location.hash.includes('Lisbon')");
    browser.settled();

    // A relation is asked for.
    browser.eval("document.getElementById('relation').value = ''");
    browser.fill("#tail", "Spain");
    browser.keys("#tail", "\u{e00c}\u{e007}");
    browser.wait("document.querySelector('#answers button[data-name=borders]')");
    browser.settled();

    // A misspelled name gets a proper message and a way on.
    browser.fill("#head", "Portgual");
    browser.fill("#relation", "borders");
    browser.eval("document.getElementById('tail').value = ''");
    browser.click("#ask .primary");
    browser.wait("!document.getElementById('problem').hidden");
    browser.click("#problem button");
    browser.settled();
    assert_eq!(browser.eval("document.getElementById('head').value"), "Portugal");

    // Add a triple with a hostile name: it matters at once, and stays text.
    let known = "[...document.querySelectorAll('#known-answers tbody button')].map((b) => b.textContent).sort()";
    browser.click("#known summary");
    browser.wait(&format!("JSON.stringify({known}) === '[\"Spain\"]'"));
    browser.click("#tab-edit");
    assert_eq!(browser.eval("location.hash"), "#view=edit");
    // Names are completed as in the question.
    browser.fill("#edit-head", "portu");
    browser.wait("document.querySelectorAll('#edit-head-list [role=option]').length > 0");
    browser.keys("#edit-head", "\u{e015}\u{e007}");
    assert_eq!(browser.eval("document.getElementById('edit-head').value"), "Portugal");
    browser.fill("#edit-relation", "borders");
    browser.fill("#edit-tail", HOSTILE);
    browser.click("#triple button[value=add]");
    browser.wait("/^Added/.test(document.getElementById('edited').textContent)");
    assert_eq!(browser.eval("document.querySelectorAll('#edits li').length"), 1);
    browser.screenshot("edit");
    browser.click("#tab-ask");
    browser.wait("/^2 known answers/.test(document.getElementById('known-title').textContent)");
    browser.settled();
    browser.click("#known summary");
    browser.wait(&format!("({known}).includes({})", json!(HOSTILE)));
    browser.wait("document.querySelectorAll('#reasons li').length > 0");
    // An edit can be taken back, after a reload too.
    browser.click("#tab-edit");
    browser.call("POST", &format!("{}/refresh", browser.session), &json!({}));
    browser.wait("document.getElementById('undo') && !document.getElementById('undo').hidden");
    browser.click("#undo");
    browser.wait("/^Taken back/.test(document.getElementById('edited').textContent)");
    assert_eq!(browser.eval("document.getElementById('undo').hidden"), true);
    browser.call("POST", &format!("{}/back", browser.session), &json!({}));
    browser.wait("/^1 known answer/.test(document.getElementById('known-title').textContent)");
    browser.settled();
    browser.wait("document.querySelectorAll('#reasons li').length > 0");
    assert_eq!(
        browser.eval("[typeof window.hacked, document.querySelectorAll('main img').length]"),
        json!(["undefined", 0])
    );

    // Dark, a phone, and 200 entities.
    browser.click("#theme");
    browser.screenshot("dark");
    browser.size(400, 900);
    browser.wait("window.innerWidth < 600");
    browser.screenshot("phone");
    browser.wait("document.documentElement.scrollWidth <= window.innerWidth");
    browser.size(1360, 1000);
    // Everything one can act on has a name.
    let nameless = "[...document.querySelectorAll('button, input, a')].filter((e) => !(e.textContent.trim() || e.labels?.length || \
                    e.getAttribute('aria-label'))).map((e) => e.outerHTML)";
    assert_eq!(browser.eval(nameless), json!([]));

    // A file dropped on the page becomes the graph.
    browser.drop_file("mine.tsv", &hub());
    browser.wait("/^mine.tsv: 241 entities/.test(document.getElementById('about').textContent)");
    browser.click("#around");
    browser.eval("(document.getElementById('size').value = 200, 1)");
    browser.fill("#head", "hub");
    browser.fill("#relation", "has");
    browser.keys("#relation", "\u{e00c}\u{e007}");
    browser.settled();
    browser.wait("flockPicture.nodes().length >= 200");
    assert_eq!(browser.eval("document.getElementById('relation-list').hidden"), true);
    browser.screenshot("large");
}

/// Names that are long and have no place to break, in every part of the page that shows names, wide and narrow.
#[test]
fn long_names_do_not_widen_the_page() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let place = Place::new();
    let [head, relation, tail] = ["H", "r", "T"].map(|c| c.repeat(300));
    let file = format!("{}.tsv", "n".repeat(200));
    let graph = format!(
        "{head}\t{relation}\t{tail}\n{tail}\t{relation}\t{head}x\n{head}\tin\t{head}x\n{head}x\t{relation}\t{tail}\n"
    );
    place.write(&file, graph);
    let models = [file.as_str(), "--model", "entity.safetensors", "--model", "relation.safetensors"];
    let (_server, address) = serve(&place, &models);
    for width in [1280, 390] {
        let fits = |what: &str| {
            let wide = browser.eval("document.documentElement.scrollWidth").as_u64().unwrap();
            let inner = browser.eval("window.innerWidth").as_u64().unwrap();
            if wide > inner {
                browser.screenshot(&format!("wide-{width}"));
                // What sticks out, for the message.
                let out = browser.eval(
                    "[...document.querySelectorAll('main *, header *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)\
                     .slice(0, 8).map((e) => e.tagName + '#' + e.id + '.' + e.className)",
                );
                panic!("{what} at {width}: {wide} > {inner}: {out}");
            }
        };
        // A window has a least width, so a narrow screen is set as a device's.
        browser.device(width, 900);
        browser.go("about:blank");
        browser.go(&address);
        browser.wait("document.querySelectorAll('#examples button').length === 3");
        fits("examples");
        browser.click("#examples button");
        browser.settled();
        browser.wait("document.querySelectorAll('#reasons li').length > 0 || /No walk/.test(document.getElementById('share').textContent)");
        fits("answers");
        browser.fill("#head", "HH");
        browser.wait("document.querySelectorAll('#head-list [role=option]').length > 0");
        fits("completion");
        browser.screenshot(&format!("long-names-{width}"));
        browser.fill("#head", &format!("{head}yy"));
        browser.keys("#head", "\u{e00c}"); // Escape closes the list
        browser.eval("(document.getElementById('tail').value = '', 1)");
        browser.click("#ask .primary");
        browser.wait("document.querySelectorAll('#problem button').length > 0");
        fits("problem");
        browser.screenshot(&format!("long-problem-{width}"));
        browser.click("#tab-complete");
        browser.click("#complete-examples button");
        browser.wait("/after [0-9,]+ question/.test(document.getElementById('complete-status').textContent)");
        fits("links");
        browser.click("#tab-score");
        browser.eval(&format!(
            "(document.getElementById('score-text').value = '{head}, {relation}, {tail}\\n{head}yy, in, {tail}', 1)"
        ));
        browser.click("#score .primary");
        browser.wait("/1 triple scored; 1 not/.test(document.getElementById('score-status').textContent)");
        fits("scores");
        browser.screenshot(&format!("long-scores-{width}"));
    }
}

/// A server that asks for its token on reads: a wrong one is said to be wrong and another can be given; the link to the API works.
#[test]
fn a_guarded_page_asks_for_the_token() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let place = Place::new();
    let models = ["world.tsv", "--model", "entity.safetensors", "--model", "relation.safetensors"];
    let (_server, address) = serve(&place, &[&models[..], &["--token", "secret", "--guard-reads"]].concat());
    browser.go(&address);
    browser.wait("document.getElementById('token').open");
    assert_eq!(browser.eval("document.getElementById('token-wrong').hidden"), true);
    browser.fill("#token-text", "wrong");
    browser.click("#token button[value=ok]");
    browser.wait("document.getElementById('token').open && !document.getElementById('token-wrong').hidden");
    assert_eq!(browser.eval("document.getElementById('token-text').value"), "");
    browser.screenshot("wrong-token");
    browser.fill("#token-text", "secret");
    browser.click("#token button[value=ok]");
    browser.wait("document.querySelectorAll('#examples button').length === 3");
    browser.click("#examples button");
    browser.settled();
    assert_eq!(browser.eval("document.getElementById('token').open"), false);
    browser.click("a[href='/docs']");
    browser.wait("document.title === 'flock-kg API'");
    // Cancelled, the page says what is missing.
    browser.eval("(sessionStorage.clear(), 1)");
    browser.go(&address);
    browser.wait("document.getElementById('token').open");
    browser.click("#token button[value='']");
    browser.wait("/needs the server's token/.test(document.getElementById('problem').textContent)");
}

/// With `flock-kg serve` alone: the bundled graph, three questions, and the models inside the program.
#[test]
fn the_first_visit_needs_nothing() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let (_server, address) = serve(&Place::new(), &[]);
    browser.go(&address);
    browser.wait("document.querySelectorAll('#examples button').length === 3");
    browser.click("#examples button");
    browser.wait("document.querySelectorAll('#answers tbody tr').length === 10");
    browser.settled();
    browser.wait("Number(document.getElementById('picture').dataset.evidence) >= 2");
    browser.screenshot("countries");
}

/// A file whose columns nobody can guess is shown, and its columns are chosen. The graph is in the address: it is there after a reload,
/// and what the server has forgotten is loaded again from the browser's copy. Answers can be taken away.
#[test]
fn a_graph_of_ones_own() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let place = Place::new();
    let models = ["world.tsv", "--model", "entity.safetensors", "--model", "relation.safetensors"];
    let (_server, address) = serve(&place, &models);
    browser.go(&address);
    browser.wait("document.querySelectorAll('#examples button').length === 3");

    // Five columns without a header: a number, the tail, the relation, another number, the head.
    let rows: String = hub()
        .lines()
        .enumerate()
        .map(|(i, l)| {
            let fields: Vec<&str> = l.split('\t').collect();
            format!("{i},\"{}\",{},0.5,{}\n", fields[2], fields[1], fields[0])
        })
        .collect();
    browser.drop_file("mine.csv", &rows);
    browser.wait("document.getElementById('columns').open");
    assert!(browser.text("columns-why").contains("5"), "{}", browser.text("columns-why"));
    assert_eq!(browser.eval("document.querySelectorAll('#columns-rows tbody tr').length"), 8);
    // The first guess takes no numbers, and for the relation what repeats most.
    assert_eq!(browser.text("columns-first"), "The first triple: leaf 0 —has→ hub");
    browser.screenshot("columns");
    let choose = |place: &str, column: u32| {
        browser.eval(&format!(
            "(() => {{ const s = document.getElementById('columns-{place}'); s.value = '{column}'; s.onchange(); return 1; }})()"
        ));
    };
    choose("head", 1);
    choose("tail", 1);
    assert_eq!(browser.eval("document.getElementById('columns-ok').disabled"), true);
    choose("head", 4);
    assert_eq!(browser.text("columns-first"), "The first triple: hub —has→ leaf 0");
    browser.click("#columns-ok");
    browser
        .wait("/^mine.csv: 241 entities, 2 relations, 480 triples/.test(document.getElementById('about').textContent)");

    // More answers than fit: the next 20, and again, past what the stream brought.
    browser.fill("#head", "leaf 7");
    browser.fill("#relation", "next");
    browser.keys("#relation", "\u{e00c}\u{e007}");
    browser.settled();
    browser.wait("!document.getElementById('more').hidden");
    let rows = "document.querySelectorAll('#answers tbody tr').length";
    assert_eq!(browser.eval(rows), 10);
    browser.click("#more");
    browser.wait(&format!("{rows} === 30"));
    let ranks = "[...document.querySelectorAll('#answers tbody tr')].map((r) => Number(r.cells[0].textContent))";
    let streamed = browser.eval(ranks);
    // Those in sight go to the clipboard, with a header.
    browser.eval(
        "(Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.copied = t; }}}), 1)",
    );
    browser.click("#copy");
    browser.wait("window.copied");
    assert_eq!(browser.eval("copied.split('\\n')[0].split('\\t').slice(0, 2)"), json!(["rank", "answer"]));
    assert_eq!(browser.eval("copied.trim().split('\\n').length"), 31);
    // All that walks reached go to a file: new ones first, then the known one.
    browser.eval("(URL.createObjectURL = (b) => { b.text().then((t) => { window.saved = t; }); return '#'; }, 1)");
    browser.click("#csv");
    browser.wait("window.saved");
    let lines = browser.eval("saved.trim().split('\\r\\n')");
    let lines: Vec<&str> = lines.as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
    assert!(lines[0].starts_with("rank,rank_among_all,answer,score,logit,spread,visits,state,reason"), "{}", lines[0]);
    assert!(lines[1].starts_with("1,"), "{}", lines[1]);
    assert!(lines.last().unwrap().contains(",leaf 8,") && lines.last().unwrap().contains(",known,"), "{lines:?}");
    assert!(lines.len() > 31);
    // The ranks of new answers are those of the stream, which leaves known ones out.
    assert_eq!(browser.eval(ranks), streamed);
    browser.eval("(window.saved = null, 1)");
    browser.click("#json");
    browser.wait("window.saved");
    let saved: Value = serde_json::from_str(browser.eval("saved").as_str().unwrap()).unwrap();
    assert_eq!(saved["query"], json!(["leaf 7", "next", "?"]));
    assert_eq!(saved["answers"].as_array().unwrap().len(), lines.len() - 1);
    while browser.eval("document.getElementById('more').hidden") == false {
        let before = browser.eval(rows).as_u64().unwrap();
        browser.click("#more");
        browser.wait(&format!("{rows} > {before}"));
    }
    assert_eq!(browser.eval(rows).as_u64().unwrap() as usize, lines.len() - 2);

    // The address has the graph, the question and the answer; a reload shows the same.
    let chosen = browser.eval("new URLSearchParams(location.hash.slice(1)).get('answer')");
    browser.call("POST", &format!("{}/refresh", browser.session), &json!({}));
    browser.settled();
    assert!(browser.text("about").starts_with("mine.csv: 241 entities"));
    assert_eq!(browser.eval("document.getElementById('head').value"), "leaf 7");
    browser.wait(&format!("document.querySelector('#answers tr[aria-selected=true]')?.dataset.name === {chosen}"));
    // Back and forward.
    browser.fill("#head", "leaf 9");
    browser.keys("#head", "\u{e00c}\u{e007}");
    browser.wait("location.hash.includes('leaf+9')");
    browser.settled();
    browser.call("POST", &format!("{}/back", browser.session), &json!({}));
    browser.wait("document.getElementById('head').value === 'leaf 7' && location.hash.includes('leaf+7')");
    browser.settled();
    browser.call("POST", &format!("{}/forward", browser.session), &json!({}));
    browser.wait("document.getElementById('head').value === 'leaf 9'");
    browser.settled();

    // The server keeps eight uploads: the ninth and those after it push this one out.
    browser.eval(
        "(async () => { for (let i = 0; i < 9; i++) await fetch('/api/v1/graphs', {method: 'POST', body: 'a\\tb\\tc\\n', \
         headers: {'Content-Type': 'text/tab-separated-values'}}); window.pushed = 1; })()",
    );
    browser.wait("window.pushed");
    browser.call("POST", &format!("{}/refresh", browser.session), &json!({}));
    browser.wait("/does not have the graph mine.csv any more/.test(document.getElementById('problem').textContent)");
    browser.screenshot("forgotten");
    browser.click("#again");
    browser
        .wait("/^mine.csv: 241 entities, 2 relations, 480 triples/.test(document.getElementById('about').textContent)");
    browser.settled();
    assert_eq!(browser.eval("document.getElementById('head').value"), "leaf 9");
    // And the server's own graph is one choice away.
    browser.eval(
        "(() => { const g = document.getElementById('graph'); g.value = ''; g.onchange({target: g}); return 1; })()",
    );
    browser.wait("/^world.tsv/.test(document.getElementById('about').textContent)");
    assert_eq!(browser.eval("location.hash"), "");
}

/// Replies with labels, and with what their numbers are: labels are shown with ids beside them, and what is sent stays the full name.
#[test]
fn labels_are_shown_and_scores_are_called_scores() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let place = Place::new();
    let models = ["world.tsv", "--model", "entity.safetensors", "--model", "relation.safetensors"];
    let (_server, address) = serve(&place, &models);
    browser.go(&address);
    browser.wait("document.querySelectorAll('#examples button').length === 3");
    // The replies of a server whose graph has labels.
    browser.eval(
        "(() => { const plain = window.fetch; window.sent = []; window.fetch = async (path, options) => { \
         if (options?.body) sent.push(options.body); const reply = await plain(path, options); \
         const labels = JSON.stringify({France: 'French Republic', Portugal: 'Portuguese Republic', borders: 'shares a border with'}); \
         const text = (await reply.text()).replaceAll('{\"query\":', `{\"probability_from\":\"score\",\"labels\":${labels},\"query\":`)\
         .replace('{\"names\":', `{\"labels\":${labels},\"names\":`); \
         return new Response(text, {status: reply.status, headers: reply.headers}); }; return 1; })()",
    );
    browser.fill("#head", "portu");
    browser.wait("document.querySelectorAll('#head-list [role=option]').length > 0");
    assert_eq!(
        browser.eval("document.querySelector('#head-list [role=option]').textContent"),
        "Portuguese Republic Portugal"
    );
    browser.keys("#head", "\u{e015}\u{e007}");
    assert_eq!(browser.eval("document.getElementById('head').value"), "Portuguese Republic");
    browser.fill("#relation", "borders");
    browser.keys("#relation", "\u{e00c}\u{e007}");
    browser.settled();
    assert!(browser.eval("sent[0]").as_str().unwrap().contains("[\"Portugal\",\"borders\",\"?\"]"));
    let france = "document.querySelector('#answers button[data-name=France]')";
    assert_eq!(browser.eval(&format!("{france}.textContent")), "French Republic France");
    assert_eq!(browser.eval(&format!("{france}.title")), "French Republic (France)");
    assert_eq!(browser.eval("document.querySelector('#answers th.measure').textContent"), "Score");
    assert!(browser.text("rest").contains("not calibrated"));
    browser.click("#answers button[data-name=France]");
    browser.wait("document.getElementById('why-title').textContent === 'Reasons for French Republic'");
    browser.wait("flockPicture.$('node.answer').map((n) => n.data('label'))[0] === 'French Republic'");
    browser.screenshot("labels");
}

/// The view "Complete": a relation's missing links come as a list; one is explained and asked about; the list can be taken away; its
/// address opens it again; it can be stopped.
#[test]
fn missing_links_are_listed_explained_and_taken_away() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let place = Place::new();
    let models = ["world.tsv", "--model", "entity.safetensors", "--model", "relation.safetensors"];
    let (_server, address) = serve(&place, &models);
    browser.go(&address);
    browser.wait("document.querySelectorAll('#examples button').length === 3");
    browser.click("#tab-complete");
    assert_eq!(browser.eval("location.hash"), "#view=complete");
    let found = "/^[0-9,]+ missing links? after [0-9,]+ questions?/.test(document.getElementById('complete-status').textContent)";

    // A relation, completed as one types; the list fills, and its first link is explained.
    browser.fill("#complete-relation", "bord");
    browser.wait("document.querySelectorAll('#complete-relation-list [role=option]').length > 0");
    browser.keys("#complete-relation", "\u{e015}\u{e007}");
    assert_eq!(browser.eval("document.getElementById('complete-relation').value"), "borders");
    browser.click("#complete .primary");
    browser.wait(found);
    browser.explained();
    let rows = "document.querySelectorAll('#links tbody tr').length";
    assert_eq!(browser.eval(rows), 20);
    assert_eq!(browser.eval("document.querySelector('#links tbody tr').getAttribute('aria-selected')"), "true");
    assert_eq!(browser.eval("document.getElementById('evidence').parentElement.id"), "complete-columns");
    // The number is called what it is, and says so at length; so does the specificity.
    assert_eq!(browser.eval("document.querySelector('#links th.measure').textContent"), "Score");
    assert!(browser.text("links-rest").contains("not calibrated"));
    for word in ["no probability", "both ends"] {
        let title = browser.eval("document.querySelector('#links th.measure').title");
        assert!(title.as_str().unwrap().contains(word), "{title}");
    }
    let specificity = browser.eval("document.querySelectorAll('#links th')[3].title");
    assert!(specificity.as_str().unwrap().contains("particular to this head"), "{specificity}");
    // None of them is known.
    let known = "[...document.querySelectorAll('#links tbody tr')].some((r) => JSON.parse(r.dataset.name).join() === 'Portugal,borders,Spain')";
    assert_eq!(browser.eval(known), false);

    // Another link, by keyboard: down a row, then enter.
    browser.eval("(document.querySelector('#links tbody button').focus(), 1)");
    browser.keys("#links tbody button", "\u{e015}");
    assert_eq!(browser.eval("document.activeElement.closest('tr').rowIndex"), 2);
    browser.click("#links tbody tr:nth-child(2) button");
    let second = browser.eval("document.querySelector('#links tbody tr:nth-child(2)').dataset.name");
    assert_eq!(browser.eval("new URLSearchParams(location.hash.slice(1)).get('link')"), second);
    browser.explained();

    // More rows; those in sight are copied, and all are saved.
    browser.click("#links-more");
    browser.wait(&format!("{rows} > 20"));
    assert_eq!(browser.eval("document.activeElement.closest('tr').rowIndex"), 21);
    browser.catch_files();
    let sight = browser.eval(rows).as_u64().unwrap();
    browser.click("#links-copy");
    browser.wait("window.copied");
    assert_eq!(browser.eval("copied.trim().split('\\n').length"), sight + 1);
    let csv = browser.saved("#links-csv");
    assert!(csv.starts_with("rank,head,relation,tail,score,specificity,tail_rank,head_rank,"), "{csv}");
    let json: Value = serde_json::from_str(&browser.saved("#links-json")).unwrap();
    assert_eq!(json["scope"]["relation"], "borders");
    assert_eq!(json["links"].as_array().unwrap().len(), csv.trim().lines().count() - 1);
    browser.screenshot("links");

    // To the question behind it, and back to the list as it was.
    browser.click("#link button");
    browser.wait("!document.getElementById('view-ask').hidden");
    browser.settled();
    assert_eq!(browser.eval("document.getElementById('relation').value"), "borders");
    assert_eq!(browser.eval("document.getElementById('evidence').parentElement.id"), "ask-columns");
    browser.back();
    browser.wait("!document.getElementById('view-complete').hidden");
    assert_eq!(browser.eval(rows).as_u64(), Some(sight));
    // The address opens the same list and the same link.
    browser.reload();
    browser.wait(found);
    assert_eq!(browser.eval("document.getElementById('complete-relation').value"), "borders");
    browser.wait(&format!("document.querySelector('#links tr[aria-selected=true]')?.dataset.name === {second}"));

    // What is wrong is said, with a way on.
    browser.fill("#complete-top", "0");
    browser.click("#complete .primary");
    browser.wait("/it can be 1 to 1000/.test(document.getElementById('problem').textContent)");
    browser.fill("#complete-top", "5");
    browser.fill("#complete-head", "Portgual");
    browser.keys("#complete-head", "\u{e00c}");
    browser.click("#complete .primary");
    browser.wait("document.querySelector('#problem button')");
    browser.click("#problem button");
    browser.wait(&format!("document.getElementById('complete-head').value === 'Portugal' && {found} && {rows} === 5"));
    browser.eval("(document.getElementById('complete-by').value = 'score', 1)");
    browser.eval("(document.getElementById('complete-explain').checked = true, 1)");
    browser.click("#complete .primary");
    browser.wait("location.hash.includes('by=score') && location.hash.includes('reasons=yes')");
    browser.wait(&format!("{found} && document.querySelectorAll('#links small:not(.narrow)').length > 0"));

    // A server that has told some links and takes its time: how long is said, and it can be stopped.
    browser.eval(
        "(() => { const plain = window.fetch; window.fetch = (path, options) => { if (!String(path).includes('complete/stream')) \
         return plain(path, options); const reply = {links: [{rank: 1, head: 'Portugal', relation: 'borders', tail: 'France', \
         logit: 1, probability: 0.7, specificity: 0.5, sides: 'tail', tail_logit: 1, tail_rank: 1, head_logit: null, head_rank: null}], \
         progress: {asked: 10, planned: 100, left: 90, lacking: 0}, seed: 0, walks: 2, passes: 1, probability_from: 'graph'}; \
         const body = new ReadableStream({start(c) { c.enqueue(new TextEncoder().encode(`event: links\\ndata: ${JSON.stringify(reply)}\\n\\n`)); \
         options.signal.addEventListener('abort', () => c.error(options.signal.reason)); }}); \
         return Promise.resolve(new Response(body)); }; return 1; })()",
    );
    browser.fill("#complete-top", "7");
    browser.click("#complete .primary");
    browser.wait("/^10 of 100 questions asked, about .* left$/.test(document.getElementById('complete-progress-words').textContent)");
    assert_eq!(browser.eval(rows), 1);
    assert_eq!(browser.eval("document.querySelector('#links th.measure').textContent"), "Probability");
    assert_eq!(browser.eval("document.getElementById('links-take').hidden"), true);
    browser.click("#complete-stop");
    browser.wait("/^Stopped after 10 questions/.test(document.getElementById('complete-status').textContent)");
    assert_eq!(browser.eval("document.getElementById('links-take').hidden"), false);
    assert_eq!(browser.eval(rows), 1);
}

/// The view "Score": triples that were picked and pasted, those that cannot be scored with near names, and taking the table away.
#[test]
fn triples_are_scored() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromedriver not found; .ci/browser installs it");
        return;
    };
    let place = Place::new();
    let models = ["world.tsv", "--model", "entity.safetensors", "--model", "relation.safetensors"];
    let (_server, address) = serve(&place, &models);
    browser.go(&address);
    browser.wait("document.querySelectorAll('#examples button').length === 3");
    browser.click("#tab-score");
    // Nothing yet.
    browser.click("#score .primary");
    browser.wait("/nothing to score/.test(document.getElementById('problem').textContent)");

    // One triple is picked, others are pasted, with tabs and with commas.
    for (box_, name) in [("head", "Portugal"), ("relation", "borders"), ("tail", "Spain")] {
        browser.fill(&format!("#score-{box_}"), name);
        browser.keys(&format!("#score-{box_}"), "\u{e00c}");
    }
    browser.click("#score-add");
    assert_eq!(browser.eval("document.getElementById('score-text').value"), "Portugal\tborders\tSpain\n");
    assert_eq!(browser.eval("document.getElementById('score-head').value"), "");
    browser.eval(
        "(document.getElementById('score-text').value += 'Portugal, borders, \"France\"\\nParis\\tcapital_of\\tFrnace\\nonly two, fields\\n', 1)",
    );
    browser.click("#score .primary");
    let status = "document.getElementById('score-status').textContent";
    browser.wait(&format!("{status} === '2 triples scored; 2 not: see why below.'"));
    browser.explained();
    let cells = |column: u32| {
        browser.eval(&format!(
            "[...document.querySelectorAll('#scores tbody tr')].map((r) => r.cells[{column}].textContent)"
        ))
    };
    assert_eq!(cells(4), json!(["known", "new"]));
    // There are 10 entities. Portugal borders Spain alone, so Spain has 10 candidates, itself among them, and France 9.
    let tails = cells(2);
    assert!(tails[0].as_str().unwrap().contains(" of 10above "), "{tails}");
    assert!(tails[1].as_str().unwrap().contains(" of 9above "), "{tails}");
    assert_eq!(browser.eval("document.querySelector('#scores th.measure').textContent"), "Score");
    assert_eq!(browser.eval("document.getElementById('evidence').parentElement.id"), "score-columns");
    let failed = browser.text("failed-list");
    assert!(failed.contains("line 4: found 2 fields, expected 3"), "{failed}");

    // A near name puts a triple right, here and in the text.
    browser.click("#failed-list button");
    browser.wait(&format!("{status} === '3 triples scored; 1 not: see why below.'"));
    let text = browser.eval("document.getElementById('score-text').value");
    assert!(text.as_str().unwrap().contains("Paris\tcapital_of\tFrance\n"), "{text}");
    assert_eq!(cells(4), json!(["known", "new", "known"]));

    // The least likely first; the table is saved in that order.
    browser.eval(
        "(() => { const o = document.getElementById('score-order'); o.value = 'worst'; o.onchange(); return 1; })()",
    );
    browser.catch_files();
    let json: Value = serde_json::from_str(&browser.saved("#scores-json")).unwrap();
    let logits: Vec<f64> = json["scores"].as_array().unwrap().iter().map(|s| s["logit"].as_f64().unwrap()).collect();
    assert!(logits.len() == 3 && logits.is_sorted(), "{logits:?}");
    assert_eq!(json["failed"].as_array().unwrap().len(), 1);
    let csv = browser.saved("#scores-csv");
    assert!(csv.starts_with("head,relation,tail,score,tail_rank,tail_candidates,tail_percentile,head_rank,"), "{csv}");
    assert_eq!(csv.trim().lines().count(), 4);
    browser.click("#scores-copy");
    browser.wait("window.copied");
    browser.screenshot("scores");

    // The address has the triples and the chosen one.
    browser.click("#scores tbody tr:nth-child(2) button");
    let chosen = browser.eval("document.querySelector('#scores tbody tr:nth-child(2)').dataset.name");
    let copied = browser.eval("copied");
    browser.reload();
    browser.wait(&format!("{status} === '3 triples scored; 1 not: see why below.'"));
    browser.wait(&format!("document.querySelector('#scores tr[aria-selected=true]')?.dataset.name === {chosen}"));
    // A table with names of columns can be pasted whole: head, relation and tail are found in it.
    browser.eval(&format!("(document.getElementById('score-text').value = {copied}, 1)"));
    browser.click("#score .primary");
    browser.wait(&format!("{status} === '3 triples scored.'"));
    assert!(browser.text("scores-rest").contains("names of columns"));

    // Narrow, and everything one can act on has a name.
    browser.device(390, 900);
    browser.wait("document.documentElement.scrollWidth <= window.innerWidth");
    let nameless = "[...document.querySelectorAll('button, input, textarea, select, a')].filter((e) => !(e.textContent.trim() || \
                    e.labels?.length || e.getAttribute('aria-label'))).map((e) => e.outerHTML)";
    assert_eq!(browser.eval(nameless), json!([]));
}
