//! Flags of the groups Security and Auth.

use super::Kind::*;
use super::{Flag, flag};

const NO_TLS: &str =
    "TLS is not supported by this version; leave it out and protect the port by other means, such as a TLS proxy";
const NO_TLS_NO_USE: &str = "used with TLS only, which this version does not have";

const CLIENT: &str = "client-transport-security";
const PEER: &str = "peer-transport-security";

#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    flag("cert-file", Text, "", "Certificate for clients' connections.").nested(CLIENT, "cert-file").refused(NO_TLS),
    flag("key-file", Text, "", "Key of that certificate.").nested(CLIENT, "key-file").refused(NO_TLS),
    flag("client-cert-auth", Bool, "false", "Demand certificates of clients.")
        .nested(CLIENT, "client-cert-auth").refused(NO_TLS),
    flag("client-cert-file", Text, "", "Certificate of the server's own client connections.")
        .nested(CLIENT, "client-cert-file").refused(NO_TLS),
    flag("client-key-file", Text, "", "Key of that certificate.").nested(CLIENT, "client-key-file").refused(NO_TLS),
    flag("client-crl-file", Text, "", "List of revoked client certificates.")
        .nested(CLIENT, "client-crl-file").refused(NO_TLS),
    flag("client-cert-allowed-hostname", List, "", "Names that a client certificate may carry.")
        .nested(CLIENT, "allowed-hostname").refused(NO_TLS),
    flag("trusted-ca-file", Text, "", "CA that signs clients' certificates.")
        .nested(CLIENT, "trusted-ca-file").refused(NO_TLS),
    flag("auto-tls", Bool, "false", "Make certificates for clients' connections.")
        .nested(CLIENT, "auto-tls").refused(NO_TLS),
    flag("peer-cert-file", Text, "", "Certificate for connections of members.")
        .nested(PEER, "cert-file").refused(NO_TLS),
    flag("peer-key-file", Text, "", "Key of that certificate.").nested(PEER, "key-file").refused(NO_TLS),
    flag("peer-client-cert-auth", Bool, "false", "Demand certificates of members.")
        .nested(PEER, "client-cert-auth").refused(NO_TLS),
    flag("peer-client-cert-file", Text, "", "Certificate shown to other members.")
        .nested(PEER, "client-cert-file").refused(NO_TLS),
    flag("peer-client-key-file", Text, "", "Key of that certificate.").nested(PEER, "client-key-file").refused(NO_TLS),
    flag("peer-trusted-ca-file", Text, "", "CA that signs members' certificates.")
        .nested(PEER, "trusted-ca-file").refused(NO_TLS),
    flag("peer-cert-allowed-cn", List, "", "Common names that a member's certificate may carry.")
        .nested(PEER, "allowed-cn").refused(NO_TLS),
    flag("peer-cert-allowed-hostname", List, "", "Names that a member's certificate may carry.")
        .nested(PEER, "allowed-hostname").refused(NO_TLS),
    flag("peer-auto-tls", Bool, "false", "Make certificates for connections of members.")
        .nested(PEER, "auto-tls").refused(NO_TLS),
    flag("peer-skip-client-san-verification", Bool, "false", "Do not compare a member's address with its certificate.")
        .nested(PEER, "skip-client-san-verification").refused(NO_TLS),
    flag("peer-crl-file", Text, "", "List of revoked certificates of members.")
        .nested(PEER, "crl-file").refused(NO_TLS),
    flag("self-signed-cert-validity", Uint, "1", "Years for which made certificates are valid.").ignored(NO_TLS_NO_USE),
    flag("cipher-suites", List, "", "TLS cipher suites to allow.").ignored(NO_TLS_NO_USE),
    flag("tls-min-version", OneOf(&["TLS1.2", "TLS1.3"]), "TLS1.2", "Lowest TLS version to allow.")
        .ignored(NO_TLS_NO_USE),
    flag("tls-max-version", OneOf(&["", "TLS1.2", "TLS1.3"]), "", "Highest TLS version to allow.")
        .ignored(NO_TLS_NO_USE),
    flag("cors", Origins, "*", "Origins that browsers may call from; `*` or nothing allows all."),
    flag("host-whitelist", List, "*", "Host names that HTTP requests may use; `*` or nothing allows all."),
];

#[rustfmt::skip]
pub(super) const AUTH: &[Flag] = &[
    flag("auth-token", Text, "simple", "Kind of token that users get: simple, or jwt,sign-method=M,priv-key=FILE,pub-key=FILE,ttl=5m."),
    flag("bcrypt-cost", Uint, "10", "Cost of hashing passwords, from 4 to 31."),
    flag("auth-token-ttl", Uint, "300", "Seconds for which a simple token lives after its last use."),
];
