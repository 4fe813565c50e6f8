//! The file that makes kubectl and all other clients work at once.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::pki::Pair;

pub(crate) fn text(server: &str, authority: &str, admin: &Pair) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: lockgate\n\
         clusters:\n- name: lockgate\n  cluster:\n    server: {server}\n    certificate-authority-data: {}\n\
         users:\n- name: admin\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n\
         contexts:\n- name: lockgate\n  context:\n    cluster: lockgate\n    user: admin\n    namespace: default\n",
        encode(authority),
        encode(&admin.cert),
        encode(&admin.key),
    )
}
