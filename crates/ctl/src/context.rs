//! The flags that every command takes, and the client made from them.

use std::time::Duration;

use tokio::sync::OnceCell;

use cli::value;
use client::{Client, ConnectOptions, User};

use crate::{
    failure::Failure,
    password,
    print::{Format, Style},
};

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Globals {
    /// Addresses of members, separated by commas
    #[arg(long, global = true, value_delimiter = ',', action = clap::ArgAction::Append, default_value = "127.0.0.1:2379", value_name = "HOST:PORT")]
    endpoints: Vec<String>,
    /// Form of answers: fields, json, protobuf, simple or table
    #[arg(short, long, global = true, default_value = "simple", value_name = "FORMAT")]
    write_out: String,
    /// Print keys and values as hex, member ids in hex
    #[arg(long, global = true)]
    hex: bool,
    /// Time for a short command, without the time to connect
    #[arg(long, global = true, default_value = "5s", value_parser = value::duration, value_name = "DURATION")]
    command_timeout: Duration,
    /// Time to connect to one endpoint
    #[arg(long, global = true, default_value = "2s", value_parser = value::duration, value_name = "DURATION")]
    dial_timeout: Duration,
    /// Time without traffic before a connection is probed
    #[arg(long, global = true, default_value = "2s", value_parser = value::duration, value_name = "DURATION")]
    keepalive_time: Duration,
    /// Time for an answer to such a probe
    #[arg(long, global = true, default_value = "6s", value_parser = value::duration, value_name = "DURATION")]
    keepalive_timeout: Duration,
    /// Largest request to send (0 means 2 MiB)
    #[arg(long, global = true, default_value = "0", value_parser = value::int, value_name = "BYTES")]
    max_request_bytes: i64,
    /// Largest answer to take (0 means 2 GiB)
    #[arg(long, global = true, default_value = "0", value_parser = value::int, value_name = "BYTES")]
    max_recv_bytes: i64,
    /// Print all settings to standard error
    #[arg(long, global = true)]
    pub debug: bool,
    /// Connect without TLS
    #[arg(long, global = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = value::boolean, value_name = "BOOL")]
    insecure_transport: bool,
    /// Accept SRV records that name endpoints without TLS
    #[arg(long, global = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = value::boolean, value_name = "BOOL")]
    insecure_discovery: bool,
    /// Do not verify the server's certificate (not supported yet)
    #[arg(long, global = true)]
    insecure_skip_tls_verify: bool,
    /// The client's certificate (not supported yet)
    #[arg(long, global = true, value_name = "FILE")]
    cert: Option<String>,
    /// The client's key (not supported yet)
    #[arg(long, global = true, value_name = "FILE")]
    key: Option<String>,
    /// Certificates of trusted authorities (not supported yet)
    #[arg(long, global = true, value_name = "FILE")]
    cacert: Option<String>,
    /// A token that was made elsewhere, to send in place of logging in
    #[arg(long, global = true, value_name = "TOKEN")]
    auth_jwt_token: Option<String>,
    /// User name, or name:password; a password that is missing is asked for
    #[arg(long, global = true, value_name = "NAME")]
    user: Option<String>,
    /// The user's password
    #[arg(long, global = true, value_name = "PASSWORD")]
    password: Option<String>,
    /// Domain whose SRV records name the endpoints (not supported yet)
    #[arg(short, long, global = true, value_name = "DOMAIN")]
    discovery_srv: Option<String>,
    /// Service name in such records (not supported yet)
    #[arg(long, global = true, value_name = "NAME")]
    discovery_srv_name: Option<String>,
}

/// What a command runs with.
pub(crate) struct Context {
    globals: Globals,
    pub program: String,
    timeout_given: bool,
    /// Known once a password has been asked for, if it must be.
    identity: OnceCell<Identity>,
}

/// Who the user says they are.
#[derive(Clone)]
enum Identity {
    Nobody,
    User(User),
    Token(String),
}

impl Context {
    pub(crate) fn new(globals: Globals, program: String, timeout_given: bool) -> Context {
        Context { globals, program, timeout_given, identity: OnceCell::new() }
    }

    /// A client of all endpoints, and how to print. Flags are checked here, after the command's own arguments.
    pub(crate) async fn open(&self) -> Result<(Client, Style), Failure> {
        let style = self.style().await?;
        Ok((self.connect(self.endpoints()).await?, style))
    }

    /// How to print, for commands that connect to endpoints one by one.
    pub(crate) async fn style(&self) -> Result<Style, Failure> {
        self.refuse_unsupported()?;
        self.identity().await?;
        let format = Format::parse(&self.globals.write_out);
        let format = format.ok_or_else(|| Failure::bad_feature("unsupported output format"))?;
        Ok(Style { format, hex: self.globals.hex, value_only: false })
    }

    /// A client that has logged in, if there is a user.
    pub(crate) async fn connect(&self, endpoints: Vec<String>) -> Result<Client, Failure> {
        let client = self.client(endpoints).await?;
        self.log_in(&client).await.map_err(|error| Failure::from(error).with_code(Failure::BAD_CONNECTION))?;
        Ok(client)
    }

    /// A client that will log in when it has to.
    pub(crate) async fn client(&self, endpoints: Vec<String>) -> Result<Client, Failure> {
        let options = self.options().await?;
        Client::connect(endpoints, options).await.map_err(|error| match error {
            client::Error::BadEndpoint { .. } => Failure::bad_args(error),
            error => Failure::bad_connection(error),
        })
    }

    /// To log in is part of connecting, and has its time.
    pub(crate) async fn log_in(&self, client: &Client) -> Result<(), client::Error> {
        let timeout = self.globals.dial_timeout;
        client.log_in((!timeout.is_zero()).then_some(timeout)).await
    }

    async fn identity(&self) -> Result<&Identity, Failure> {
        self.identity.get_or_try_init(|| self.identify()).await
    }

    async fn identify(&self) -> Result<Identity, Failure> {
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        if let Some(token) = given(&self.globals.auth_jwt_token) {
            return Ok(Identity::Token(token));
        }
        let Some(user) = given(&self.globals.user) else { return Ok(Identity::Nobody) };
        if let Some(password) = given(&self.globals.password) {
            return Ok(Identity::User(User::new(user, password)));
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name.to_owned(), password.to_owned()),
            None => (user, password::ask("Password: ").await?),
        };
        Ok(Identity::User(User::new(name, password)))
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        let trimmed = self.globals.endpoints.iter().map(|endpoint| endpoint.trim().to_owned());
        trimmed.filter(|endpoint| !endpoint.is_empty()).collect()
    }

    /// The endpoints given, or those of all members.
    pub(crate) async fn member_endpoints(&self, cluster: bool) -> Result<Vec<String>, Failure> {
        if !cluster {
            return Ok(self.endpoints());
        }
        let client = self.client(self.endpoints()).await?;
        self.log_in(&client).await?;
        let list = client.member_list(true).await.map_err(|error| {
            Failure::error(format!("failed to fetch endpoints from etcd cluster member list: {error}"))
        })?;
        Ok(list.members.into_iter().flat_map(|member| member.client_ur_ls).collect())
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.globals.command_timeout
    }

    /// The timeout only if the user asked for one: long work has none by default.
    pub(crate) fn timeout_if_given(&self) -> Option<Duration> {
        self.timeout_given.then_some(self.globals.command_timeout)
    }

    async fn options(&self) -> Result<ConnectOptions, Failure> {
        let globals = &self.globals;
        let (send, recv) = (globals.max_request_bytes, globals.max_recv_bytes);
        if recv > 0 && send > recv {
            return Err(Failure::bad_connection(format!(
                "gRPC message recv limit ({recv} bytes) must be greater than send limit ({send} bytes)"
            )));
        }
        let mut options =
            ConnectOptions::new().dial_timeout(globals.dial_timeout).request_timeout(globals.command_timeout);
        if !globals.keepalive_time.is_zero() {
            options = options.keep_alive(globals.keepalive_time, globals.keepalive_timeout);
        }
        options = match self.identity().await?.clone() {
            Identity::Nobody => options,
            Identity::User(user) => options.user(user),
            Identity::Token(token) => options.token(token),
        };
        if send > 0 {
            options = options.send_bytes_max(send as usize);
        }
        if recv > 0 {
            options = options.recv_bytes_max(recv as usize);
        }
        Ok(options)
    }

    /// What is not there yet is refused by name, so that nothing goes out unprotected that should not.
    fn refuse_unsupported(&self) -> Result<(), Failure> {
        let globals = &self.globals;
        let secrets = [("cert", &globals.cert), ("key", &globals.key), ("cacert", &globals.cacert)];
        if let Some((name, _)) = secrets.iter().find(|(_, value)| value.as_deref() == Some("")) {
            return Err(Failure::bad_args(format!("empty string is passed to --{name} option")));
        }
        let tls = secrets.iter().find(|(_, value)| value.is_some()).map(|(name, _)| *name);
        let tls = tls.or((!globals.insecure_transport).then_some("insecure-transport=false"));
        if let Some(flag) = tls.or(globals.insecure_skip_tls_verify.then_some("insecure-skip-tls-verify")) {
            return Err(Failure::bad_args(format!("--{flag}: TLS is not supported yet; leave the flag out")));
        }
        let others = [
            ("discovery-srv", &globals.discovery_srv, "discovery by DNS"),
            ("discovery-srv-name", &globals.discovery_srv_name, "discovery by DNS"),
        ];
        let given = |value: &Option<String>| value.as_deref().is_some_and(|value| !value.is_empty());
        if let Some((flag, _, what)) = others.iter().find(|(_, value, _)| given(value)) {
            return Err(Failure::bad_args(format!("--{flag}: {what} is not supported yet; leave the flag out")));
        }
        Ok(())
    }
}
