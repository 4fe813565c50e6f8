//! A tool that runs until it ends or is killed, and its output so far.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use harness::{spawn_child, until, until_some};

/// The time that an incorrect tool gets to print more than is expected. It cannot fail a correct one.
const EXTRA_OUTPUT: Duration = Duration::from_millis(200);

pub(crate) struct Tool {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
}

/// The output and the exit code of a tool; no code if it was killed.
pub(crate) struct Printed {
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub code: Option<i32>,
}

impl Tool {
    /// Starts a tool and writes `input` to its standard input, which stays open.
    pub(crate) fn start(mut command: Command, input: &str) -> Tool {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn_child(command).unwrap();
        let (stdout, stderr) = (Capture::start(child.stdout.take()), Capture::start(child.stderr.take()));
        let mut stdin = child.stdin.take();
        // A tool that does not read its input may have ended.
        let _ = stdin.as_mut().map(|stdin| stdin.write_all(input.as_bytes()));
        Tool { child, stdin, stdout, stderr }
    }

    /// Closes standard input and waits until the tool ends.
    pub(crate) fn end(mut self) -> Printed {
        drop(self.stdin.take());
        self.end_with_input_open()
    }

    pub(crate) fn end_with_input_open(mut self) -> Printed {
        let status = until_some("the tool ends", || self.child.try_wait().unwrap());
        self.printed(status.code())
    }

    /// Waits until the output so far, as bytes of both streams, has what `is_enough` wants, and kills the tool.
    pub(crate) fn kill_when(mut self, what: &str, is_enough: impl Fn(&[u8], &[u8]) -> bool) -> Printed {
        until(what, || {
            // A tool that prints its last line and ends has printed enough, too.
            let ended = self.child.try_wait().unwrap();
            is_enough(&self.stdout.bytes(), &self.stderr.bytes()) || ended.is_some()
        });
        thread::sleep(EXTRA_OUTPUT);
        let ended = self.child.try_wait().unwrap();
        let _ = self.child.kill();
        self.child.wait().unwrap();
        self.printed(ended.and_then(|status| status.code()))
    }

    fn printed(&mut self, code: Option<i32>) -> Printed {
        let stderr = self.stderr.finish();
        Printed { stdout: self.stdout.finish(), stderr: String::from_utf8_lossy(&stderr).into_owned(), code }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of one stream, which a thread reads while the tool runs.
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Capture {
    fn start(stream: Option<impl Read + Send + 'static>) -> Capture {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sink, mut stream) = (Arc::clone(&bytes), stream.unwrap());
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Capture { bytes, reader: Some(reader) }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    /// Everything that the tool has printed, once it has ended.
    fn finish(&mut self) -> Vec<u8> {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.bytes()
    }
}
