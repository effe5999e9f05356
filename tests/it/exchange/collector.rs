//! A collector that does as it is told, and keeps what it has taken.

use super::super::support::loopback;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What it does with the next requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Takes them.
    Takes,
    /// Takes them, and says that it refuses some records of each.
    Refuses(u64),
    /// Answers so, with what else the header says.
    Answers(u16, &'static str),
    /// Takes none that has more records than this.
    Small(usize),
    /// Reads them and says nothing.
    Hangs,
    /// Reads them and closes the connection.
    Breaks,
}

#[derive(Default)]
struct Kept {
    lines: Vec<String>,
    requests: Vec<(String, usize)>,
}

pub struct Collector {
    pub address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    kept: Arc<Mutex<Kept>>,
    task: JoinHandle<()>,
}

impl Collector {
    pub async fn start(mood: Mood) -> Collector {
        Collector::start_at(loopback(), mood).await
    }

    pub async fn start_at(address: SocketAddr, mood: Mood) -> Collector {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mood = Arc::new(Mutex::new(mood));
        let kept = Arc::<Mutex<Kept>>::default();
        let task = tokio::spawn({
            let (mood, kept) = (mood.clone(), kept.clone());
            async move {
                // They end with this task.
                let mut open = JoinSet::new();
                while let Ok((stream, _)) = listener.accept().await {
                    open.spawn(serve(stream, mood.clone(), kept.clone()));
                }
            }
        });
        Collector {
            address,
            mood,
            kept,
            task,
        }
    }

    pub fn becomes(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// The lines of the records that it took, in order.
    pub fn lines(&self) -> Vec<String> {
        self.kept.lock().unwrap().lines.clone()
    }

    /// How many requests came, and the head of the last.
    pub fn requests(&self) -> (usize, String) {
        let kept = self.kept.lock().unwrap();
        let last = kept.requests.last().map(|(head, _)| head.clone());
        (kept.requests.len(), last.unwrap_or_default())
    }

    /// How many records the largest request had.
    pub fn largest(&self) -> usize {
        let kept = self.kept.lock().unwrap();
        kept.requests
            .iter()
            .map(|(_, records)| *records)
            .max()
            .unwrap_or(0)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, mood: Arc<Mutex<Mood>>, kept: Arc<Mutex<Kept>>) {
    let mut bytes = Vec::new();
    loop {
        let Some((head, body)) = request(&mut stream, &mut bytes).await else {
            return;
        };
        let body: Value = serde_json::from_slice(&body).unwrap();
        let records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
            .as_array()
            .unwrap();
        let lines = records
            .iter()
            .map(|record| record["body"]["stringValue"].as_str().unwrap());
        let mood = *mood.lock().unwrap();
        let (status, field, answer) = match mood {
            Mood::Takes => (200, "", "{}".to_owned()),
            Mood::Refuses(count) => {
                let partial = format!(r#"{{"partialSuccess":{{"rejectedLogRecords":"{count}"}}}}"#);
                (200, "", partial)
            }
            Mood::Answers(status, field) => (status, field, String::new()),
            Mood::Small(most) if records.len() > most => (413, "", String::new()),
            Mood::Small(_) => (200, "", "{}".to_owned()),
            Mood::Hangs | Mood::Breaks => (0, "", String::new()),
        };
        {
            let mut kept = kept.lock().unwrap();
            if status == 200 {
                kept.lines.extend(lines.map(str::to_owned));
            }
            kept.requests.push((head, records.len()));
        }
        match mood {
            Mood::Breaks => return,
            Mood::Hangs => std::future::pending().await,
            _ => {}
        }
        let answer = format!(
            "HTTP/1.1 {status} x\r\n{field}content-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                let length = name.eq_ignore_ascii_case("content-length");
                length.then(|| value.parse::<usize>().unwrap())
            });
            let whole = end + 4 + length.unwrap();
            if bytes.len() >= whole {
                let body = bytes[end + 4..whole].to_vec();
                bytes.drain(..whole);
                return Some((head, body));
            }
        }
        let mut piece = [0; 65536];
        match stream.read(&mut piece).await {
            Ok(length @ 1..) => bytes.extend_from_slice(&piece[..length]),
            Ok(0) | Err(_) => return None,
        }
    }
}
