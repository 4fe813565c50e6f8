//! A proxy whose connections a test can cut.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

/// Forwards connections to one server until it is asked to cut them.
#[derive(Debug)]
pub struct Proxy {
    pub address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// Listens on a port of its own and forwards to `target`, as `host:port`.
    pub fn start(target: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (target, open) = (target.to_owned(), Arc::clone(&streams));
        thread::spawn(move || {
            for inbound in listener.incoming().flatten() {
                let Ok(outbound) = TcpStream::connect(&target) else { continue };
                if forward(&inbound, &outbound).and_then(|()| forward(&outbound, &inbound)).is_ok() {
                    lock(&open).extend([inbound, outbound]);
                }
            }
        });
        Proxy { address, streams }
    }

    /// Closes all connections. New ones are forwarded again.
    pub fn cut(&self) {
        for stream in lock(&self.streams).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn lock(streams: &Mutex<Vec<TcpStream>>) -> MutexGuard<'_, Vec<TcpStream>> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forward(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    Ok(())
}
