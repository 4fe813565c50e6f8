//! A member within the process of the test.

use std::{net::TcpListener, path::Path};

use server::config::{Config, Parsed};

/// Starts a member alone in its cluster; returns it and its endpoint.
pub async fn start(dir: &Path) -> (server::Server, String) {
    for _ in 0..10 {
        let ports: Vec<u16> = {
            let held: Vec<TcpListener> =
                (0..2).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
            held.iter().map(|listener| listener.local_addr().expect("an address").port()).collect()
        };
        let (client, peer) = (format!("http://127.0.0.1:{}", ports[0]), format!("http://127.0.0.1:{}", ports[1]));
        let args = [
            format!("--data-dir={}", dir.display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ];
        let Ok(Parsed::Run(config)) = Config::from_args(&args, &[]) else { panic!("flags of the member") };
        // Somebody may take a port between our look at it and the member's.
        if let Ok(server) = server::Server::start(*config).await {
            return (server, format!("127.0.0.1:{}", ports[0]));
        }
    }
    panic!("the member does not start");
}
